package githubtest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// excerpt is what GitHub's description, @octokit/openapi 23.0.2, has of the operations.
// The command excerpt writes it.
//
//go:embed testdata/openapi.json
var excerpt []byte

type object = map[string]any

// operation is one of the description.
type operation struct {
	name    string
	method  string
	path    *regexp.Regexp
	query   map[string]*jsonschema.Schema
	body    *jsonschema.Schema
	answers map[string]*jsonschema.Schema
	// described are the answers as the excerpt has them.
	described object
}

// description is the operations, and schemas that they share.
type description struct {
	operations []*operation
	defs       object
	// refusal is the schema of refusals that are not listed.
	refusal *jsonschema.Schema
}

// described compiles the excerpt once in a process.
var described = sync.OnceValue(func() description {
	var raw struct {
		Operations map[string]struct{ Query, Body, Answers any }
		Defs       object `json:"$defs"`
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(excerpt))
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err == nil {
		err = json.Unmarshal(excerpt, &raw)
	}
	if err == nil {
		err = c.AddResource("openapi.json", document)
	}
	if err != nil {
		panic(err)
	}
	compile := func(path ...string) *jsonschema.Schema {
		location := "openapi.json#"
		for _, token := range path {
			location += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
		}
		return c.MustCompile(location)
	}
	d := description{defs: raw.Defs, refusal: compile("$defs", "basic-error")}
	for name, o := range raw.Operations {
		method, path, _ := strings.Cut(name, " ")
		compiled := &operation{
			name:      name,
			method:    method,
			path:      expression(path),
			query:     make(map[string]*jsonschema.Schema),
			answers:   make(map[string]*jsonschema.Schema),
			described: o.Answers.(object),
		}
		for parameter := range o.Query.(object) {
			compiled.query[parameter] = compile("operations", name, "query", parameter)
		}
		for status := range compiled.described {
			compiled.answers[status] = compile("operations", name, "answers", status)
		}
		if o.Body != nil {
			compiled.body = compile("operations", name, "body")
		}
		d.operations = append(d.operations, compiled)
	}
	return d
})

// expression matches paths of a template. A {ref} and the name of a label may have slashes.
func expression(template string) *regexp.Regexp {
	return regexp.MustCompile("^" + regexp.MustCompile(`\{(\w+)\}`).ReplaceAllStringFunc(template, func(parameter string) string {
		switch name := strings.Trim(parameter, "{}"); name {
		case "ref", "name":
			return "(?P<" + name + ">.+)"
		case "issue_number", "comment_id":
			return "(?P<" + name + ">[0-9]+)"
		default:
			return "(?P<" + name + ">[^/]+)"
		}
	}) + "$")
}

// find returns the operation of a request, and the values of its path.
func (d description) find(method, path string) (*operation, map[string]string) {
	for _, o := range d.operations {
		if found := o.path.FindStringSubmatch(path); o.method == method && found != nil {
			values := make(map[string]string)
			for i, name := range o.path.SubexpNames() {
				values[name] = found[i]
			}
			return o, values
		}
	}
	return nil, nil
}

// request returns how a request breaks the description.
func (o *operation) request(query url.Values, body []byte) error {
	for name, values := range query {
		schema, known := o.query[name]
		if !known {
			return fmt.Errorf("query: %s is not described", name)
		}
		var value any = values[0]
		if n, err := strconv.Atoi(values[0]); err == nil && schema.Types != nil && slices.Contains(schema.Types.ToStrings(), "integer") {
			value = n
		}
		if err := schema.Validate(value); err != nil {
			return fmt.Errorf("query: %s: %w", name, err)
		}
	}
	if o.body == nil {
		return nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if labels, bare := document.([]any); bare && strings.HasSuffix(o.name, "/labels") {
		document = object{"labels": labels} // GitHub takes the bare list of go-github, too, but describes it no more.
	}
	if err == nil {
		err = o.body.Validate(document)
	}
	if err != nil {
		return fmt.Errorf("body: %w in %s", err, body)
	}
	return nil
}

// everywhere are the statuses that GitHub describes for all operations at once, in texts
// about authentication, rights, conditional requests and limits.
var everywhere = []int{http.StatusNotModified, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests}

// answer returns how an answer breaks the description.
func (o *operation) answer(status int, body []byte) error {
	schema, listed := o.answers[strconv.Itoa(status)]
	switch {
	case !listed && !slices.Contains(everywhere, status):
		return fmt.Errorf("is not described")
	case !listed:
		schema = described().refusal
	}
	if status == http.StatusNotModified || status == http.StatusNoContent {
		return nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = schema.Validate(document)
	}
	return err
}

// complete gives the value what the schema requires beyond it.
func (d description) complete(schema, value any, given bool) any {
	s, _ := schema.(object)
	if ref, ok := s["$ref"].(string); ok {
		return d.complete(d.defs[strings.TrimPrefix(ref, "#/$defs/")], value, given)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if alternatives, ok := s[word].([]any); ok {
			if !given && slices.ContainsFunc(alternatives, func(a any) bool { return a.(object)["type"] == "null" }) {
				return nil
			}
			return d.complete(alternatives[0], value, given)
		}
	}
	if parts, ok := s["allOf"].([]any); ok {
		for _, part := range parts {
			value, given = d.complete(part, value, given), true
		}
		return value
	}
	kind := s["type"]
	if kinds, ok := kind.([]any); ok {
		if kind = kinds[0]; !given {
			return nil
		}
	}
	switch v := value.(type) {
	case nil:
		if given {
			return nil
		}
	case object:
		properties, _ := s["properties"].(object)
		for name, member := range v {
			v[name] = d.complete(properties[name], member, true)
		}
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, there := v[name.(string)]; !there {
				v[name.(string)] = d.complete(properties[name.(string)], nil, false)
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = d.complete(s["items"], v[i], true)
		}
		return v
	default:
		return v
	}
	if values, ok := s["enum"].([]any); ok {
		return values[0]
	}
	switch kind {
	case "object":
		return d.complete(s, object{}, true)
	case "array":
		return []any{}
	case "string":
		return map[any]string{"uri": "https://github.example/", "date-time": "2026-01-01T00:00:00Z", "email": "nobody@example.com"}[s["format"]]
	case "boolean":
		return false
	default:
		return 0
	}
}

// render makes the body of an answer, with all that is required of it.
func (o *operation) render(status int, answer any) ([]byte, error) {
	text, err := json.Marshal(answer)
	var value any
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		return nil, err
	}
	if schema, listed := o.described[strconv.Itoa(status)]; listed {
		value = described().complete(schema, value, true)
	}
	return json.Marshal(value)
}
