package springtest

// statements are those of a DefaultLockRepository with the prefix INT_, with
// $1 in the place of JDBC's question marks.
type statements struct {
	update, insert, renew, count, deleteExpired string
	// beginAcquire opens the transaction of an acquisition.
	beginAcquire string
}

const (
	deleteSQL    = `DELETE FROM INT_LOCK WHERE REGION=$1 AND LOCK_KEY=$2 AND CLIENT_ID=$3`
	deleteAllSQL = `DELETE FROM INT_LOCK WHERE REGION=$1 AND CLIENT_ID=$2`
	countAllSQL  = `SELECT COUNT(REGION) FROM INT_LOCK`
)

// columns4 keep the TTL in the reader.
var columns4 = statements{
	update:        `UPDATE INT_LOCK SET CLIENT_ID=$1, CREATED_DATE=$2 WHERE REGION=$3 AND LOCK_KEY=$4 AND (CLIENT_ID=$5 OR CREATED_DATE<$6)`,
	insert:        `INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE) VALUES ($1, $2, $3, $4)`,
	renew:         `UPDATE INT_LOCK SET CREATED_DATE=$1 WHERE REGION=$2 AND LOCK_KEY=$3 AND CLIENT_ID=$4`,
	count:         `SELECT COUNT(REGION) FROM INT_LOCK WHERE REGION=$1 AND LOCK_KEY=$2 AND CLIENT_ID=$3 AND CREATED_DATE>=$4`,
	deleteExpired: `DELETE FROM INT_LOCK WHERE REGION=$1 AND CREATED_DATE<$2`,
	beginAcquire:  `BEGIN ISOLATION LEVEL READ COMMITTED`,
}

// columns5 keep it in the row. CREATED_DATE is written once, when the row is:
// neither a renewal nor a steal touches it.
var columns5 = statements{
	update:        `UPDATE INT_LOCK SET CLIENT_ID=$1, EXPIRED_AFTER=$2 WHERE REGION=$3 AND LOCK_KEY=$4 AND (CLIENT_ID=$5 OR EXPIRED_AFTER<$6)`,
	insert:        `INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES ($1, $2, $3, $4, $5)`,
	renew:         `UPDATE INT_LOCK SET EXPIRED_AFTER=$1 WHERE REGION=$2 AND LOCK_KEY=$3 AND CLIENT_ID=$4`,
	count:         `SELECT COUNT(REGION) FROM INT_LOCK WHERE REGION=$1 AND LOCK_KEY=$2 AND CLIENT_ID=$3 AND EXPIRED_AFTER>=$4`,
	deleteExpired: `DELETE FROM INT_LOCK WHERE REGION=$1 AND EXPIRED_AFTER<$2`,
	beginAcquire:  `BEGIN ISOLATION LEVEL READ COMMITTED`,
}

func (g Generation) statements() statements {
	switch g {
	case Spring7:
		return columns5
	case Spring5:
		s := columns4
		s.beginAcquire = `BEGIN ISOLATION LEVEL SERIALIZABLE`
		return s
	}
	return columns4
}
