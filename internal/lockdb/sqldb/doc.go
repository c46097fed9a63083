// Package sqldb is the coordination database below its tables: the pools of
// connections, the two dialects of SQL, the schemas in which the tables are, the
// migrations, the generations of INT_LOCK, and what an error of a driver means.
//
// PostgreSQL serves a cluster, SQLite the processes of one host. Both run the same
// SQL wherever they can: a [Rendering] fills in what differs, what depends on the
// generation of INT_LOCK, and the schemas. A package keeps its [Statements] in a struct.
//
// Every time comes from the database's clock, in UTC. The clock of a node plays no
// part.
package sqldb
