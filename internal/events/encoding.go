package events

// Encoding says how the data of an event writes the values of a column. The zero value is a
// string.
type Encoding string

// How values are written.
const (
	EncodingInteger Encoding = "integer"
	// EncodingNumber is a number; a string where JSON has no such number.
	EncodingNumber  Encoding = "number"
	EncodingBoolean Encoding = "boolean"
	// EncodingBytes is base64.
	EncodingBytes Encoding = "bytes"
	// EncodingTime is a date and a time with a T between them. EncodingUTC is one whose zone is
	// always UTC.
	EncodingTime Encoding = "time"
	EncodingUTC  Encoding = "utc"
	// EncodingYear is a string of four digits.
	EncodingYear Encoding = "year"
	// EncodingJSON is a value of JSON as it is.
	EncodingJSON Encoding = "json"
	// EncodingHash is the hash of a value, which begins with [HashPrefix], EncodingMask is
	// [Mask].
	EncodingHash Encoding = "hash"
	EncodingMask Encoding = "mask"
	// EncodingAny is of a column that holds numbers, strings and bytes.
	EncodingAny Encoding = "any"
)

const (
	// HashPrefix begins the hash of a value; 64 hexadecimal digits follow.
	HashPrefix = "hmac-sha256:"
	// Mask stands for a value that is hidden.
	Mask = "***"
)
