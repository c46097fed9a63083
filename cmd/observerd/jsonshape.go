package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// shaped is a value as the commands print it: like [json.Marshal], but times have
// milliseconds, a zero time is null, durations are whole milliseconds, and an empty list is
// [].
func shaped(value any) any { return shapeOf(reflect.ValueOf(value)) }

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
		return timestamp(known)
	case time.Duration:
		return known.Milliseconds()
	case json.Marshaler, encoding.TextMarshaler:
		return known
	}
	switch v.Kind() {
	case reflect.Struct:
		return appendMembers(jsonObject{}, v)
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

// jsonObject is a JSON object whose members keep their order.
type jsonObject []jsonMember

type jsonMember struct {
	name  string
	value any
}

// MarshalJSON implements [json.Marshaler].
func (o jsonObject) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	text.WriteByte('{')
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for i, m := range o {
		if i > 0 {
			text.WriteByte(',')
		}
		if err := encoder.Encode(m.name); err != nil {
			return nil, err
		}
		text.WriteByte(':')
		if err := encoder.Encode(m.value); err != nil {
			return nil, err
		}
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// appendMembers appends the fields of a struct as their tags say.
func appendMembers(o jsonObject, v reflect.Value) jsonObject {
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
		o = append(o, jsonMember{name, shapeOf(value)})
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
