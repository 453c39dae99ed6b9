"""The mathematics of m-Distinct: arrays in, arrays out, no database and no files."""
