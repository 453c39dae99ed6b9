-- The hospital of the paper: its first snapshot, published once, and again every night at two.
CREATE TABLE hospital (name text PRIMARY KEY, zip int, hours int, disease text);

INSERT INTO hospital VALUES
    ('Ken', 14000, 20, 'Dyspepsia'),
    ('Julia', 16000, 23, 'Pneumonia'),
    ('Tom', 24000, 32, 'Pneumonia'),
    ('Harry', 26000, 35, 'Gastritis'),
    ('Lily', 29000, 17, 'Glaucoma'),
    ('Ben', 31000, 19, 'Flu');

SELECT mdistinct_register('hospital', 'hospital', id_column => 'name',
    qi_columns => '{zip,hours}', sensitive_column => 'disease', m => 2);

SELECT mdistinct_allow_update('hospital', old_value, new_values)
FROM (VALUES
    ('Dyspepsia', '{Dyspepsia,Gastritis}'::text[]),
    ('Gastritis', '{Gastritis,Dyspepsia}'),
    ('Flu', '{Flu,Pneumonia}'),
    ('Pneumonia', '{Pneumonia,Lung Cancer}'),
    ('Lung Cancer', '{Lung Cancer,Pneumonia}'),
    ('Glaucoma', '{Glaucoma,Cataract}'),
    ('Cataract', '{Cataract,Glaucoma}')
) AS model (old_value, new_values);

SELECT * FROM mdistinct_publish('hospital');

SELECT mdistinct_schedule('hospital', '0 2 * * *');
