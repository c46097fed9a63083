package jsontext

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// Shaped returns a value as the commands and the HTTP API print it by [json.Marshal]: times
// have milliseconds, a zero time is null, durations are whole milliseconds, and an empty
// list is [].
func Shaped(value any) any { return shapeOf(reflect.ValueOf(value)) }

// Timestamp writes a time for programs and people: RFC 3339 in UTC, with milliseconds.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

func shapeOf(v reflect.Value) any {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	if !v.IsValid() {
		return nil
	}
	switch known := v.Interface().(type) {
	case time.Time:
		if known.IsZero() {
			return nil
		}
		return Timestamp(known)
	case time.Duration:
		return known.Milliseconds()
	case json.Marshaler, encoding.TextMarshaler:
		return known
	}
	switch v.Kind() {
	case reflect.Struct:
		return appendMembers(Object{}, v)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		list := make([]any, v.Len())
		for i := range list {
			list[i] = shapeOf(v.Index(i))
		}
		return list
	case reflect.Map:
		if v.IsNil() {
			return nil
		}
		members := make(map[string]any, v.Len())
		for _, key := range v.MapKeys() {
			members[key.String()] = shapeOf(v.MapIndex(key))
		}
		return members
	}
	return v.Interface()
}

// Object is a JSON object whose members keep their order.
type Object []Member

// Member is one of the members of an [Object].
type Member struct {
	Name  string
	Value any
}

// MarshalJSON implements [json.Marshaler].
func (o Object) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	text.WriteByte('{')
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for i, m := range o {
		if i > 0 {
			text.WriteByte(',')
		}
		if err := encoder.Encode(m.Name); err != nil {
			return nil, err
		}
		text.WriteByte(':')
		if err := encoder.Encode(m.Value); err != nil {
			return nil, err
		}
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// appendMembers appends the fields of a struct as their tags say.
func appendMembers(o Object, v reflect.Value) Object {
	for _, field := range reflect.VisibleFields(v.Type()) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		embedded := field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct
		if !field.IsExported() && !embedded || name == "-" || len(field.Index) > 1 {
			continue
		}
		value := v.FieldByIndex(field.Index)
		switch {
		case embedded:
			o = appendMembers(o, value)
			continue
		case strings.Contains(options, "omitzero") && value.IsZero(), strings.Contains(options, "omitempty") && isEmpty(value):
			continue
		case name == "":
			name = field.Name
		}
		o = append(o, Member{name, shapeOf(value)})
	}
	return o
}

// isEmpty is what omitempty means.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
