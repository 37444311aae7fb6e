"""What services see of a table, whatever format it is in: small Protocols, and the plain records that cross.

``opening`` makes what the Protocols describe. A format implements them and imports the records from here.
"""
