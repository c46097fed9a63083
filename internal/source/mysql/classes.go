package mysql

import (
	"cmp"
	"slices"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// refusalKind is what is known of an error of the server.
type refusalKind struct {
	class observer.Class
	// quotable says that the message, if it is the server's own, names accounts,
	// objects and states, but never a value. While rows are read it may be that of a
	// SIGNAL, and is told in words of our own as all others are.
	quotable bool
	// text are those words; empty for those of the class.
	text string
}

// words are those of the classes.
var words = map[observer.Class]string{
	observer.ClassSettings:    "a database, a host or a setting does not fit",
	observer.ClassResource:    "the server, or this account, has no room for it",
	observer.ClassUnreachable: "the server shuts down, or is not ready",
	observer.ClassKilled:      "the session or the statement was ended, or met a limit on rows",
	observer.ClassTimeout:     "a time limit of the server has passed",
	observer.ClassRetry:       "the table was changed, or others came first",
	observer.ClassQuery:       "a name, a type or a right does not fit",
}

// refusals are the errors that tell what to do about them. The numbers up to 1900
// mean the same to MySQL and MariaDB; those behind are one server's alone.
var refusals = map[uint16]refusalKind{
	// The account.
	1044: {class: observer.ClassCredentials, quotable: true, text: "a right on a database is missing"},                                  // no right on the database
	1045: {class: observer.ClassCredentials, quotable: true, text: "a logon to another server, or the right to use files, was refused"}, // wrong user or password
	1133: {class: observer.ClassCredentials, quotable: true},
	1698: {class: observer.ClassCredentials, quotable: true}, // another plugin is asked for
	1820: {class: observer.ClassCredentials, quotable: true}, // must change the password
	1862: {class: observer.ClassCredentials, quotable: true}, // password expired
	3118: {class: observer.ClassCredentials, quotable: true}, // MySQL: account locked
	3878: {class: observer.ClassCredentials, quotable: true}, // MySQL: empty password refused
	3955: {class: observer.ClassCredentials, quotable: true}, // MySQL: temporarily locked
	4150: {class: observer.ClassCredentials, quotable: true}, // MariaDB: blocked by password failures
	4151: {class: observer.ClassCredentials, quotable: true}, // MariaDB: account locked

	// The address and what the server asks of a connection.
	1049: {class: observer.ClassSettings, quotable: true}, // no such database
	1129: {class: observer.ClassSettings, quotable: true}, // host blocked
	1130: {class: observer.ClassSettings, quotable: true}, // host not allowed
	1251: {class: observer.ClassSettings, quotable: true}, // authentication protocol
	1524: {class: observer.ClassSettings, quotable: true}, // plugin not loaded
	3159: {class: observer.ClassSettings, quotable: true}, // MySQL: insecure transport refused
	1193: {class: observer.ClassSettings, quotable: true}, // a variable that this version lacks

	// No room.
	1040: {class: observer.ClassResource, quotable: true}, // too many connections
	1203: {class: observer.ClassResource, quotable: true}, // of this account
	1226: {class: observer.ClassResource, quotable: true}, // a limit of this account
	1021: {class: observer.ClassResource, text: "the disk is full"},
	1037: {class: observer.ClassResource, text: "out of memory"},
	1038: {class: observer.ClassResource, text: "out of memory for sorting"},
	1041: {class: observer.ClassResource, text: "out of memory"},
	1114: {class: observer.ClassResource, text: "a table is full"},
	1135: {class: observer.ClassResource, text: "no further thread can be made"},
	1206: {class: observer.ClassResource, text: "too many locks"},

	// Down, or on its way.
	1047: {class: observer.ClassUnreachable, text: "the server is not ready"}, // Galera, outside of its cluster
	3032: {class: observer.ClassUnreachable, quotable: true},                  // offline mode
	1053: {class: observer.ClassUnreachable, quotable: true},                  // shutdown
	1077: {class: observer.ClassUnreachable, quotable: true},
	1079: {class: observer.ClassUnreachable, quotable: true},
	1152: {class: observer.ClassUnreachable, text: "the connection was aborted"},
	1158: {class: observer.ClassUnreachable, text: "an error in reading packets"},
	1159: {class: observer.ClassUnreachable, text: "no packet in time"},
	1160: {class: observer.ClassUnreachable, text: "an error in writing packets"},
	1161: {class: observer.ClassUnreachable, text: "a packet could not be written in time"},
	1184: {class: observer.ClassUnreachable, text: "the connection was aborted"},
	3169: {class: observer.ClassKilled, quotable: true}, // MySQL: session was killed
	4031: {class: observer.ClassUnreachable, text: "the session was idle for too long"},

	// Ended over there.
	1104: {class: observer.ClassKilled, quotable: true}, // more rows than max_join_size
	1317: {class: observer.ClassKilled, quotable: true}, // interrupted
	1927: {class: observer.ClassKilled, quotable: true}, // MariaDB: connection killed
	1931: {class: observer.ClassKilled, quotable: true}, // MariaDB: too many rows examined

	// Took too long.
	lockWaitTimeout: {class: observer.ClassTimeout, text: "somebody has locked a table that is read here, as by ALTER TABLE or LOCK TABLES: wait for that session, or end it"},
	1969:            {class: observer.ClassTimeout, quotable: true}, // MariaDB: max_statement_time
	3024:            {class: observer.ClassTimeout, quotable: true}, // MySQL: max_execution_time

	// Read again.
	1176: {class: observer.ClassRetry, quotable: true}, // the index that was to serve is gone
	1020: {class: observer.ClassRetry, text: "a row has changed since it was read"},
	1213: {class: observer.ClassRetry, quotable: true, text: "a deadlock"},                               // deadlock
	1412: {class: observer.ClassRetry, quotable: true, text: "the table was altered after the snapshot"}, // the table was altered after the snapshot
	1684: {class: observer.ClassRetry, text: "the table is being altered"},

	// The statement.
	1046: {class: observer.ClassQuery, quotable: true},
	1051: {class: observer.ClassQuery, quotable: true},
	1052: {class: observer.ClassQuery, quotable: true},
	1054: {class: observer.ClassQuery, quotable: true, text: "a column does not exist"}, // unknown column
	1055: {class: observer.ClassQuery, quotable: true},
	1056: {class: observer.ClassQuery, quotable: true},
	1060: {class: observer.ClassQuery, quotable: true, text: "two columns have one name"}, // two columns of one name
	1064: {class: observer.ClassQuery, quotable: true, text: "a syntax error"},            // syntax: quotes the statement, which holds names alone
	1109: {class: observer.ClassQuery, quotable: true},
	1142: {class: observer.ClassQuery, quotable: true, text: "a right on a table is missing"},  // no right on the table
	1143: {class: observer.ClassQuery, quotable: true, text: "a right on a column is missing"}, // no right on the column
	1345: {class: observer.ClassQuery, text: "the plan of a view is shown to those alone who may read its definition: GRANT SHOW VIEW ON it to the account that reads, or leave it; polls do not need it"},
	1146: {class: observer.ClassQuery, quotable: true, text: "a table does not exist"}, // no such table
	1149: {class: observer.ClassQuery, quotable: true},
	1227: {class: observer.ClassQuery, quotable: true, text: "a privilege is missing"},         // a privilege is missing
	1267: {class: observer.ClassQuery, quotable: true, text: "collations do not fit together"}, // a mix of collations
	1271: {class: observer.ClassQuery, quotable: true, text: "collations do not fit together"},
	1290: {class: observer.ClassQuery, quotable: true},
	1305: {class: observer.ClassQuery, quotable: true, text: "a function does not exist"},                                 // no such function
	1356: {class: observer.ClassQuery, quotable: true, text: "a view reads what does not exist, or what it may not read"}, // a broken view
	1370: {class: observer.ClassQuery, quotable: true, text: "a right on a function is missing"},                          // no right on the function
	1449: {class: observer.ClassQuery, quotable: true, text: "the definer of a view or a function does not exist"},        // the definer of a view is gone
	1792: {class: observer.ClassQuery, quotable: true, text: "the query writes, but a source is only read"},               // it writes

	// The content of rows: these messages quote values.
	1242: {class: observer.ClassData, text: "a subquery returns more than one row"},
	1264: {class: observer.ClassData, text: "a value is out of range"},
	1292: {class: observer.ClassData, text: "a value cannot be converted as the query asks"},
	1366: {class: observer.ClassData, text: "a value does not fit its type"},
	1365: {class: observer.ClassData, text: "a division by zero"},
	1406: {class: observer.ClassData, text: "a value is too long"},
	1411: {class: observer.ClassData, text: "a value is not as a function expects it"},
	1525: {class: observer.ClassData, text: "a value is not as its type expects it"},
	1690: {class: observer.ClassData, text: "a number is out of range"},
	3141: {class: observer.ClassData, text: "a text is not valid JSON"},
	3143: {class: observer.ClassData, text: "a JSON path is not valid"},
	3156: {class: observer.ClassData, text: "a JSON value cannot be converted as the query asks"},
	3037: {class: observer.ClassData, text: "a geometry is not valid"},
}

func classOf(number uint16, p source.Phase) observer.Class {
	return p.Class(cmp.Or(refusals[number].class, observer.ClassUnknown))
}

// interrupted reports whether an error may be what the end of our context has
// made of a statement.
func interrupted(number uint16) bool {
	return slices.Contains([]uint16{1317, 1927, 1969, 3024, 3169}, number)
}
