package engine

import (
	"fmt"
	"strconv"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// typeName is the name of a data type without its size, as the catalogue has it.
type typeName string

const (
	typeNumber       typeName = "NUMBER"
	typeFloat        typeName = "FLOAT"
	typeVarchar      typeName = "VARCHAR2"
	typeNVarchar     typeName = "NVARCHAR2"
	typeChar         typeName = "CHAR"
	typeNChar        typeName = "NCHAR"
	typeLong         typeName = "LONG"
	typeCLOB         typeName = "CLOB"
	typeNCLOB        typeName = "NCLOB"
	typeRaw          typeName = "RAW"
	typeBLOB         typeName = "BLOB"
	typeRowID        typeName = "ROWID"
	typeJSON         typeName = "JSON"
	typeDate         typeName = "DATE"
	typeTimestamp    typeName = "TIMESTAMP"
	typeTimestampTZ  typeName = "TIMESTAMP WITH TIME ZONE"
	typeTimestampLTZ typeName = "TIMESTAMP WITH LOCAL TIME ZONE"
	typeInterval     typeName = "INTERVAL DAY TO SECOND"
	typeDouble       typeName = "BINARY_DOUBLE"
	typeSingle       typeName = "BINARY_FLOAT"
)

// dataType is a type with its sizes. The zero value is that of NULL.
type dataType struct {
	name typeName
	// size is the length of text (in characters where chars is set) or raw
	// bytes, precision and scale those of a NUMBER, and scale the digits of a
	// TIMESTAMP's fraction.
	size, precision, scale int
	chars                  bool
	// exact says that a NUMBER has a scale: NUMBER(38) and not NUMBER.
	exact bool
}

func plain(name typeName) dataType {
	d := dataType{name: name}
	switch name {
	case typeTimestamp, typeTimestampTZ, typeTimestampLTZ, typeInterval:
		d.scale = 9
	case typeVarchar:
		d.size = 4000
	}
	return d
}

func varchar(size int) dataType { return dataType{name: typeVarchar, size: max(size, 1)} }

func (d dataType) kind() kind {
	switch d.name {
	case typeNumber, typeFloat:
		return kindNumber
	case typeRaw, typeBLOB:
		return kindRaw
	case typeDate:
		return kindDate
	case typeTimestamp:
		return kindTimestamp
	case typeTimestampTZ:
		return kindTimestampTZ
	case typeTimestampLTZ:
		return kindTimestampLTZ
	case typeInterval:
		return kindInterval
	case typeDouble, typeSingle:
		return kindDouble
	case "":
		return kindNull
	}
	return kindText
}

func (d dataType) isText() bool { return d.kind() == kindText }

// padded says that values of the type are compared with blanks at their ends.
func (d dataType) padded() bool { return d.name == typeChar || d.name == typeNChar }

// national is text in the national character set.
func (d dataType) national() bool {
	return d.name == typeNVarchar || d.name == typeNChar || d.name == typeNCLOB
}

// lob is what cannot be compared, sorted or grouped.
func (d dataType) lob() bool {
	switch d.name {
	case typeCLOB, typeNCLOB, typeBLOB, typeLong, typeJSON:
		return true
	}
	return false
}

// String is DATA_TYPE of the catalogue.
func (d dataType) String() string {
	switch d.name {
	case typeTimestamp:
		return "TIMESTAMP(" + strconv.Itoa(d.scale) + ")"
	case typeTimestampTZ:
		return "TIMESTAMP(" + strconv.Itoa(d.scale) + ") WITH TIME ZONE"
	case typeTimestampLTZ:
		return "TIMESTAMP(" + strconv.Itoa(d.scale) + ") WITH LOCAL TIME ZONE"
	case typeInterval:
		return fmt.Sprintf("INTERVAL DAY(2) TO SECOND(%d)", d.scale)
	}
	return string(d.name)
}

// bytes is DATA_LENGTH of the catalogue.
func (d dataType) bytes() int {
	switch d.name {
	case typeNumber, typeFloat:
		return 22
	case typeDate:
		return 7
	case typeTimestamp, typeTimestampLTZ, typeInterval:
		return 11
	case typeTimestampTZ:
		return 13
	case typeDouble:
		return 8
	case typeSingle:
		return 4
	case typeRowID:
		return 10
	case typeCLOB, typeNCLOB, typeBLOB, typeJSON:
		return 4000
	case typeNVarchar, typeNChar:
		return d.size * 2
	}
	if d.chars {
		return min(d.size*4, 32767)
	}
	return d.size
}

var wireTypes = map[typeName]wire.Type{
	typeNumber: wire.TypeNumber, typeFloat: wire.TypeNumber, typeChar: wire.TypeChar, typeNChar: wire.TypeChar,
	typeDate: wire.TypeDate, typeTimestamp: wire.TypeTimestamp, typeTimestampTZ: wire.TypeTimestampTZ,
	typeTimestampLTZ: wire.TypeTimestampLTZ, typeRaw: wire.TypeRaw, typeBLOB: wire.TypeRaw,
	typeCLOB: wire.TypeCLOB, typeNCLOB: wire.TypeCLOB, typeLong: wire.TypeCLOB, typeRowID: wire.TypeRowID,
	typeJSON: wire.TypeJSON, typeDouble: wire.TypeBinaryDouble, typeSingle: wire.TypeBinaryFloat,
}

// column describes the type to a client.
func (d dataType) column(name string, nullable bool) wire.Column {
	c := wire.Column{Name: name, Type: wireTypes[d.name], Nullable: nullable}
	switch d.name {
	case typeNumber:
		c.Precision, c.Scale = d.precision, d.scale
	case typeTimestamp, typeTimestampTZ, typeTimestampLTZ:
		c.Scale = d.scale
	case typeVarchar, typeChar, typeNVarchar, typeNChar:
		c.Size = d.bytes()
		if d.national() {
			c.Size = d.size * 4 // It is sent in the database's character set.
		}
	case typeRaw:
		c.Size = d.size
	}
	return c
}
