package events

//go:generate go test -run ^TestSchemasOfStandardEvents$ -count=1 -write-schemas .

import (
	"encoding/json"
	"net/url"
	"slices"
)

// Member is a column in the data of an event.
type Member struct {
	// Name is the member's, Description what people call its type.
	Name, Description string
	Encoding          Encoding
	// Nullable says that the value may be null. Key says that the column is of the key:
	// its value is never null, and what is gone has it too.
	Nullable, Key bool
}

// Contract is what is known of events beforehand.
type Contract struct {
	// Stream is the id of their observer; empty for any.
	Stream string
	// Type is that of the events. Required.
	Type string
	// Changes are those that occur; empty for all.
	Changes []Change
	// Members are those of the data; nil for unknown. More says that there may be others.
	Members []Member
	More    bool
}

// Schema returns the JSON Schema (draft 2020-12) of the events, as [AppendJSON] writes them.
func (c Contract) Schema() ([]byte, error) {
	changes := c.Changes
	if len(changes) == 0 {
		changes = []Change{ChangeNew, ChangeChanged, ChangeGone}
	}
	type object = map[string]any
	text := object{"type": "string"}
	instant := object{"type": "string", "format": "date-time", "pattern": `\.[0-9]{6}Z$`}
	source, title := object{"type": "string", "pattern": "^" + sourcePrefix}, "Events of the type "+c.Type
	if c.Stream != "" {
		source, title = object{"const": sourcePrefix + url.PathEscape(c.Stream)}, "Events of the observer "+c.Stream
	}
	schema := object{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   title,
		"type":    "object",
		"properties": object{
			"specversion":     object{"const": "1.0"},
			"id":              object{"type": "string", "format": "uuid"},
			"source":          source,
			"type":            object{"const": c.Type},
			"subject":         text,
			"time":            instant,
			"observedtime":    instant,
			"sequence":        object{"type": "string", "pattern": "^[0-9]{20}$"},
			"rowversion":      object{"type": "integer", "minimum": 1},
			"change":          object{"enum": changes},
			"snapshot":        object{"const": true},
			"datacontenttype": object{"const": "application/json"},
			"data":            c.data(false),
		},
		"required": []string{"specversion", "id", "source", "type", "subject", "sequence", "rowversion", "change", "datacontenttype", "data"},
	}
	if slices.Contains(changes, ChangeGone) && c.Members != nil {
		data := func(gone bool) object { return object{"properties": object{"data": c.data(gone)}} }
		delete(schema["properties"].(object), "data") //nolint:forcetypeassert // It is made above.
		schema["if"] = object{"properties": object{"change": object{"const": ChangeGone}}}
		schema["then"], schema["else"] = data(true), data(false)
	}
	return json.MarshalIndent(schema, "", "  ")
}

// data is the schema of the data of rows, or of what is gone.
func (c Contract) data(gone bool) map[string]any {
	if c.Members == nil {
		return map[string]any{"type": "object", "minProperties": 1}
	}
	properties, names := map[string]any{}, []string{}
	for _, m := range c.Members {
		if gone && !m.Key {
			continue
		}
		properties[m.Name] = m.schema()
		names = append(names, m.Name)
	}
	return map[string]any{"type": "object", "properties": properties, "required": names, "additionalProperties": c.More && !gone}
}

func (m Member) schema() map[string]any {
	types, schema := []string{"string"}, map[string]any{}
	switch m.Encoding {
	case EncodingInteger:
		types[0] = "integer"
	case EncodingNumber, EncodingAny:
		types = []string{"number", "string"} // See [EncodingNumber].
	case EncodingBoolean:
		types[0] = "boolean"
	case EncodingJSON:
		types = nil
	case EncodingBytes:
		schema["contentEncoding"] = "base64"
	case EncodingHash:
		schema["pattern"] = "^" + HashPrefix + "[0-9a-f]{64}$"
	case EncodingMask:
		schema["const"] = Mask
	case EncodingYear:
		schema["pattern"] = "^[0-9]{4}$"
	case EncodingTime, EncodingUTC:
	}
	if m.Nullable && !m.Key && types != nil {
		types = append(types, "null")
	}
	switch len(types) {
	case 0:
	case 1:
		schema["type"] = types[0]
	default:
		schema["type"] = types
	}
	if m.Description != "" {
		schema["description"] = m.Description
	}
	return schema
}

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
