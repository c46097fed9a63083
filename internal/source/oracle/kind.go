package oracle

import (
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/source"
)

// kind says how a column is selected and how its value becomes JSON.
type kind uint8

const (
	kindUnfit  kind = iota // no event can hold it
	kindText               // arrives as it is
	kindPadded             // CHAR, whose blanks at the end belong to the type
	kindNumber             // arrives as exact decimal text
	kindDouble             // which may be NaN or infinite
	kindBool
	kindDate
	kindTimestamp
	kindTimestampTZ
	kindTimestampLTZ
	kindInterval
	kindRaw
	kindRowID
	kindURowID
	kindCLOB
	kindJSON
)

// kinds are the types as the catalogue names them, without their lengths.
var kinds = map[string]kind{
	"VARCHAR2": kindText, "NVARCHAR2": kindText, "VARCHAR": kindText,
	"CHAR": kindPadded, "NCHAR": kindPadded,
	"NUMBER": kindNumber, "FLOAT": kindNumber,
	"BINARY_FLOAT": kindDouble, "BINARY_DOUBLE": kindDouble,
	"BOOLEAN":                        kindBool,
	"DATE":                           kindDate,
	"TIMESTAMP":                      kindTimestamp,
	"TIMESTAMP WITH TIME ZONE":       kindTimestampTZ,
	"TIMESTAMP WITH LOCAL TIME ZONE": kindTimestampLTZ,
	"INTERVAL YEAR TO MONTH":         kindInterval,
	"INTERVAL DAY TO SECOND":         kindInterval,
	"RAW":                            kindRaw,
	"ROWID":                          kindRowID,
	"UROWID":                         kindURowID,
	"CLOB":                           kindCLOB, "NCLOB": kindCLOB,
	"JSON": kindJSON,
}

// kindOf returns the kind of a type as [source.Column] has it.
func kindOf(typeName string) kind { return kinds[typeName] }

// encodingOf says what [appendCell] makes of values of that type.
func encodingOf(typeName string) events.Encoding {
	switch kindOf(typeName) {
	case kindNumber, kindDouble:
		return events.EncodingNumber
	case kindBool:
		return events.EncodingBoolean
	case kindRaw:
		return events.EncodingBytes
	case kindJSON:
		return events.EncodingJSON
	}
	return ""
}

// driverTypes are the names that drivers give to the types of a result, where
// they differ from the catalogue's. NCHAR is what go-ora calls any VARCHAR2.
var driverTypes = map[string]string{
	"NCHAR": "VARCHAR2", "VARCHAR": "VARCHAR2", "CHARZ": "CHAR",
	"IBFloat": "BINARY_FLOAT", "IBDouble": "BINARY_DOUBLE", "BFloat": "BINARY_FLOAT", "BDouble": "BINARY_DOUBLE",
	"TimeStampDTY": "TIMESTAMP", "TimeStampTZ_DTY": "TIMESTAMP WITH TIME ZONE", "TimeStampTZ": "TIMESTAMP WITH TIME ZONE",
	"TimeStampLTZ_DTY": "TIMESTAMP WITH LOCAL TIME ZONE", "TimeStampeLTZ": "TIMESTAMP WITH LOCAL TIME ZONE",
	"IntervalYM_DTY": "INTERVAL YEAR TO MONTH", "IntervalYM": "INTERVAL YEAR TO MONTH",
	"IntervalDS_DTY": "INTERVAL DAY TO SECOND", "IntervalDS": "INTERVAL DAY TO SECOND",
	"LongVarChar": "CLOB", "OCIClobLocator": "CLOB", "OCIBlobLocator": "BLOB", "LongRaw": "BLOB", "LongVarRaw": "BLOB",
	"OCIFileLocator": "BFILE", "OCIXMLType": "XMLTYPE", "XMLType": "XMLTYPE",
	"TNSType(119)": "JSON", "TNSType(127)": "VECTOR", "TNSType(252)": "BOOLEAN",
}

// driverType writes a type of a result as [source.Column] has it.
func driverType(name string) string {
	if known, ok := driverTypes[name]; ok {
		return known
	}
	return typeName(name)
}

// typeName writes a type of the catalogue as [source.Column] has it: without the
// lengths, as a column that becomes wider is none of another type.
func typeName(name string) string {
	if plain := source.WithoutLengths(name); kinds[plain] != kindUnfit {
		return plain
	}
	return name // also "TNSType(n)", of which the number is all that is known
}

// instead says what to write for a column of a type that no event can hold.
func instead(typeName, column string) string {
	switch typeName {
	case "XMLTYPE":
		return "XMLSERIALIZE(CONTENT " + column + " AS CLOB) AS " + column
	case "BLOB", "BFILE":
		return "DBMS_LOB.GETLENGTH(" + column + ") AS " + column + "_LENGTH"
	}
	return "an expression over " + column + " that is text, a number or a time"
}
