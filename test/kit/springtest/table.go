package springtest

// table6 and table7 are INT_LOCK as schema-postgresql.sql of the library
// creates it, to the letter. Spring 5 and 6 share theirs.
const (
	table6 = `CREATE TABLE INT_LOCK  (
	LOCK_KEY CHAR(36) NOT NULL,
	REGION VARCHAR(100) NOT NULL,
	CLIENT_ID CHAR(36),
	CREATED_DATE TIMESTAMP NOT NULL,
	constraint INT_LOCK_PK primary key (LOCK_KEY, REGION)
);`
	table7 = `CREATE TABLE INT_LOCK  (
	LOCK_KEY CHAR(36) NOT NULL,
	REGION VARCHAR(100) NOT NULL,
	CLIENT_ID CHAR(36),
	CREATED_DATE TIMESTAMP NOT NULL,
	EXPIRED_AFTER TIMESTAMP NOT NULL,
	constraint INT_LOCK_PK primary key (LOCK_KEY, REGION)
);`
)

// Table is the statement by which the generation's script creates INT_LOCK.
func (g Generation) Table() string {
	if g == Spring7 {
		return table7
	}
	return table6
}
