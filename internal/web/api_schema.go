package web

import (
	_ "embed"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/status"
)

//go:embed openapi.json
var openAPIText []byte

// openAPI returns the description of the API: the file with its paths, and the schemas of
// the types that the answers are made of, which so cannot differ from them.
var openAPI = sync.OnceValue(func() map[string]any {
	var document map[string]any
	if err := json.Unmarshal(openAPIText, &document); err != nil {
		panic(err) // It is embedded.
	}
	schemas := document["components"].(map[string]any)["schemas"].(map[string]any) //nolint:forcetypeassert // It is a part of the program.
	for _, t := range []reflect.Type{
		reflect.TypeFor[status.Report](), reflect.TypeFor[status.ObserverDetails](), reflect.TypeFor[status.HeldLock](), reflect.TypeFor[problem](),
	} {
		schemaOf(t, schemas)
	}
	return document
})

// schemaOf returns the JSON Schema of a type as [jsontext.Shaped] shows it. It adds those of
// structs by name.
func schemaOf(t reflect.Type, named map[string]any) map[string]any {
	switch t {
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[time.Duration]():
		return map[string]any{"type": "integer", "description": "milliseconds"}
	case reflect.TypeFor[status.Level]():
		return map[string]any{"enum": []any{status.LevelOK, status.LevelDegraded, status.LevelFailing}}
	case reflect.TypeFor[status.Definition]():
		t = reflect.TypeFor[map[string]string]()
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Pointer:
		return schemaOf(t.Elem(), named)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), named)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), named)}
	case reflect.Struct:
		name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		if named[name] == nil {
			named[name] = true // It may have itself in it.
			named[name] = objectOf(t, named)
		}
		return map[string]any{"$ref": "#/components/schemas/" + name}
	}
	return map[string]any{"type": "string"}
}

func objectOf(t reflect.Type, named map[string]any) map[string]any {
	properties, required := make(map[string]any), []any{}
	for _, field := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		schema := schemaOf(field.Type, named)
		if options == "" {
			required = append(required, name)
			if field.Type == reflect.TypeFor[time.Time]() {
				schema["type"] = []any{"string", "null"} // Never is null.
			}
		}
		properties[name] = schema
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}
