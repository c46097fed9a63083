package field

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
)

// Template is a text with {{…}} in it, as package text/template describes them; the
// function json writes a value as JSON. It is compiled when it is read, and prints as it
// is written. The zero value makes the empty text.
type Template struct {
	text     string
	compiled *template.Template
}

// ofTemplate is how the library begins its errors.
var ofTemplate = regexp.MustCompile(`^template: :(\d+)(?::\d+)?: (?:executing "" at )?`)

// UnmarshalText compiles a template. The error says in which of its lines the mistake is.
func (t *Template) UnmarshalText(text []byte) error {
	compiled, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{"json": asJSON}).Parse(string(text))
	if err != nil {
		return errors.New("line " + ofTemplate.ReplaceAllString(err.Error(), "$1 of this template: ") + `; use for example {{.Stream}}, or {{"{{"}} for plain braces`)
	}
	*t = Template{string(text), compiled}
	return nil
}

func asJSON(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

// Execute returns the text with the fields of data. A field that data lacks, or a map in
// it, is an error, which repeats nothing of data.
func (t Template) Execute(data any) (string, error) {
	if t.compiled == nil {
		return "", nil
	}
	var out strings.Builder
	if err := t.compiled.Execute(&out, data); err != nil {
		place, _, _ := strings.Cut(ofTemplate.ReplaceAllString(err.Error(), "line $1 of the template: "), ">: ")
		return "", fmt.Errorf("%s> has no value here", place)
	}
	return out.String(), nil
}

// String is the template as it is written.
func (t Template) String() string { return t.text }
