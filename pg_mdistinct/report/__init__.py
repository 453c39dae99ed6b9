"""One page that tells what was published, what it promises, and what an adversary makes of it.

`figures` asks the database, `charts` draws, `page` puts both into one file of HTML. The last two
need the extra `report`.
"""
