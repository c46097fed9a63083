// Command excerpt writes what GitHub's own description of its REST API, which the package
// @octokit/openapi has as generated/api.github.com.json, says of the operations of package
// githubtest, as JSON Schema:
//
//	go run ./test/kit/githubtest/cmd/excerpt api.github.com.json > test/kit/githubtest/testdata/openapi.json
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// operations are those of package githubtest.
var operations = []string{
	"GET /user",
	"GET /repos/{owner}/{repo}",
	"GET /repos/{owner}/{repo}/commits/{ref}",
	"GET /repos/{owner}/{repo}/git/ref/{ref}",
	"POST /repos/{owner}/{repo}/git/refs",
	"PATCH /repos/{owner}/{repo}/git/refs/{ref}",
	"GET /repos/{owner}/{repo}/git/matching-refs/{ref}",
	"POST /repos/{owner}/{repo}/git/commits",
	"GET /repos/{owner}/{repo}/git/commits/{commit_sha}",
	"GET /repos/{owner}/{repo}/issues",
	"GET /repos/{owner}/{repo}/issues/{issue_number}",
	"PATCH /repos/{owner}/{repo}/issues/{issue_number}",
	"POST /repos/{owner}/{repo}/issues/{issue_number}/assignees",
	"DELETE /repos/{owner}/{repo}/issues/{issue_number}/assignees",
	"GET /repos/{owner}/{repo}/issues/{issue_number}/comments",
	"POST /repos/{owner}/{repo}/issues/{issue_number}/comments",
	"GET /repos/{owner}/{repo}/issues/comments",
	"GET /repos/{owner}/{repo}/issues/comments/{comment_id}",
	"PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}",
	"DELETE /repos/{owner}/{repo}/issues/comments/{comment_id}",
	"POST /repos/{owner}/{repo}/issues/{issue_number}/labels",
	"DELETE /repos/{owner}/{repo}/issues/{issue_number}/labels/{name}",
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: excerpt api.github.com.json")
		os.Exit(2)
	}
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		text, err = excerpt(text)
	}
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "excerpt:", err)
		os.Exit(1)
	}
}

type object = map[string]any

// excerpt is the operations, with the schemas that they need.
func excerpt(description []byte) ([]byte, error) {
	var whole object
	if err := json.Unmarshal(description, &whole); err != nil {
		return nil, err
	}
	d := document{whole: whole, defs: object{}}
	all := object{}
	for _, name := range operations {
		method, path, _ := strings.Cut(name, " ")
		operation, ok := at(whole, "paths", path, strings.ToLower(method)).(object)
		if !ok {
			return nil, fmt.Errorf("%s is not described", name)
		}
		all[name] = d.operation(operation)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(object{"operations": all, "$defs": d.defs})
	return b.Bytes(), err
}

// document is the description, and the schemas that the operations needed so far.
type document struct{ whole, defs object }

func at(v any, path ...string) any {
	for _, name := range path {
		o, _ := v.(object)
		v = o[name]
	}
	return v
}

// resolve follows references that are not to schemas.
func (d document) resolve(v any) any {
	if ref, ok := at(v, "$ref").(string); ok {
		return at(d.whole, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return v
}

func (d document) operation(o object) object {
	query, answers := object{}, object{}
	parameters, _ := o["parameters"].([]any)
	for _, p := range parameters {
		p = d.resolve(p)
		if at(p, "in") == "query" {
			query[at(p, "name").(string)] = d.schema(at(p, "schema"))
		}
	}
	responses, _ := o["responses"].(object)
	for status, answer := range responses {
		answers[status] = d.schema(at(d.resolve(answer), "content", "application/json", "schema"))
	}
	described := object{"query": query, "answers": answers}
	if body := d.resolve(o["requestBody"]); body != nil {
		described["body"] = d.schema(at(body, "content", "application/json", "schema"))
	}
	return described
}

// words are the members of a schema that decide nothing.
var words = []string{"default", "deprecated", "description", "discriminator", "example", "examples", "externalDocs", "nullable", "readOnly", "title"}

// schema turns a schema of OpenAPI 3.0 into JSON Schema. It is false where nothing is allowed.
func (d document) schema(v any) any {
	s, ok := v.(object)
	if !ok {
		return false
	}
	if ref, ok := s["$ref"].(string); ok {
		name := ref[strings.LastIndex(ref, "/")+1:]
		if _, known := d.defs[name]; !known {
			d.defs[name] = nil // A schema may refer to itself.
			d.defs[name] = d.schema(d.resolve(s))
		}
		return object{"$ref": "#/$defs/" + name}
	}
	out := object{}
	for name, member := range s {
		switch {
		case slices.Contains(words, name) || strings.HasPrefix(name, "x-"):
		case name == "properties":
			properties := object{}
			for property, of := range member.(object) {
				properties[property] = d.schema(of)
			}
			out[name] = properties
		case name == "allOf" || name == "anyOf" || name == "oneOf":
			var alternatives []any
			for _, of := range member.([]any) {
				alternatives = append(alternatives, d.schema(of))
			}
			out[name] = alternatives
		case name == "items" || name == "not" || name == "additionalProperties":
			out[name] = member
			if _, ok := member.(object); ok {
				out[name] = d.schema(member)
			}
		default:
			out[name] = member
		}
	}
	if s["nullable"] != true {
		return out
	}
	if values, ok := out["enum"].([]any); ok && !slices.Contains(values, nil) {
		out["enum"] = append(slices.Clone(values), nil)
	}
	if kind, ok := out["type"].(string); ok && out["allOf"] == nil && out["anyOf"] == nil && out["oneOf"] == nil {
		out["type"] = []any{kind, "null"}
		return out
	}
	return object{"anyOf": []any{out, object{"type": "null"}}}
}
