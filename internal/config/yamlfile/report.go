package yamlfile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Layer says where a value came from; a higher one wins.
type Layer int

// The layers, from the lowest.
const (
	FromDefault Layer = iota
	FromFile
	FromEnvironment
	FromFlag
)

// Origin is the place to correct a value. The zero value is that of a default.
type Origin struct {
	Layer Layer
	// File is the path of the file; "" is that of the report, until [Report.SetOrigin]
	// notes it.
	File string
	// Line and Column count from 1; 0 where the value is not of the file.
	Line, Column int
	// Name is the variable or flag; "" for a value of the file.
	Name string
}

// Start is the origin of what concerns a file as a whole.
func Start() Origin { return Origin{Layer: FromFile, Line: 1, Column: 1} }

// Report knows where each key was set and what is wrong with it. Keys are dotted, with
// [i] for an entry of a list. [NewReport] makes one.
type Report struct {
	// File is the path of the file that is read, as problems repeat it. Who reads
	// several sets it to each in turn, and then to a name for all of them.
	File string
	// Problems are the mistakes and Warnings the rest, as they were found.
	Problems, Warnings []Problem

	origins map[string]Origin
	wrong   map[string]bool
	hidden  map[string]hidden
}

// hidden is a text that the problems of a key do not repeat, and what they say instead.
type hidden struct{ text, instead string }

// NewReport returns an empty report on a file.
func NewReport(file string) *Report {
	return &Report{File: file, origins: make(map[string]Origin), wrong: make(map[string]bool), hidden: make(map[string]hidden)}
}

// Apart returns a report on the same keys with problems and warnings of its own.
func (r *Report) Apart() *Report {
	alone := *r
	alone.Problems, alone.Warnings, alone.wrong = nil, nil, maps.Clone(r.wrong)
	return &alone
}

// SetOrigin notes where a key was set.
func (r *Report) SetOrigin(key string, o Origin) {
	if o.Layer == FromFile {
		o.File = cmp.Or(o.File, r.File)
	}
	r.origins[key] = o
}

// Hide has the problems of a key, from now on, say something else where they would
// repeat the text.
func (r *Report) Hide(key, text, instead string) { r.hidden[key] = hidden{text, instead} }

// OriginOf returns where a key was set, or else where the section is that it would
// be in. What was not set anywhere has layer FromDefault.
func (r *Report) OriginOf(key string) Origin {
	for {
		if o, ok := r.origins[key]; ok {
			return o
		}
		i := strings.LastIndexAny(key, ".[")
		if i < 0 {
			return Origin{}
		}
		key = key[:i]
	}
}

// LayerOf returns the layer that set the key itself.
func (r *Report) LayerOf(key string) Layer { return r.origins[key].Layer }

// IsSet reports whether some layer has the key; a list's keys come from the file.
func (r *Report) IsSet(key string) bool { return r.LayerOf(key) != FromDefault }

// Reject notes a mistake at a key. A key has one mistake at most: others may follow
// from the first.
func (r *Report) Reject(key, text string) {
	if r.wrong[key] {
		return
	}
	r.wrong[key] = true
	r.Problems = append(r.Problems, r.problem(r.OriginOf(key), key, text))
}

// RejectFile notes that the file of a key cannot be read; the key "" is the
// configuration itself, which may have several that cannot.
func (r *Report) RejectFile(key string, why Unreadable) {
	if key != "" && r.wrong[key] {
		return
	}
	r.wrong[key] = true
	p := r.problem(r.OriginOf(key), key, why.Text)
	p.Unread, p.Denied = true, why.Denied
	r.Problems = append(r.Problems, p)
}

// RejectAt notes a mistake at a place of its own.
func (r *Report) RejectAt(o Origin, key, text string) {
	r.Problems = append(r.Problems, r.problem(o, key, text))
}

// Warn notes a warning at a key.
func (r *Report) Warn(key, text string) {
	r.Warnings = append(r.Warnings, r.problem(r.OriginOf(key), key, text))
}

func (r *Report) problem(o Origin, key, text string) Problem {
	if h, ok := r.hidden[key]; ok {
		text = strings.Replace(text, h.text, h.instead, 1)
	}
	p := Problem{File: cmp.Or(o.File, r.File), Line: o.Line, Column: o.Column, Origin: o.Name, Key: key, Text: text}
	if o.Name != "" {
		p.File = ""
	}
	return p
}

// Adopt takes over the problems of a report that [Report.Apart] made.
func (r *Report) Adopt(apart *Report) {
	r.Problems, r.wrong = append(r.Problems, apart.Problems...), apart.wrong
}

// Include takes over, at the key that names a file, the report on that file.
func (r *Report) Include(key string, file *Report) {
	within := func(p Problem) Problem {
		outer := r.problem(r.OriginOf(key), key, p.String())
		outer.Denied = p.Denied
		return outer
	}
	for _, p := range file.Problems {
		r.MarkWrong(key)
		r.Problems = append(r.Problems, within(p))
	}
	for _, p := range file.Warnings {
		r.Warnings = append(r.Warnings, within(p))
	}
}

// MarkWrong notes that the value of a key cannot be used, without a problem of its own.
func (r *Report) MarkWrong(key string) { r.wrong[key] = true }

// OK reports whether none of the keys is wrong.
func (r *Report) OK(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return r.wrong[key] })
}

// Where is the place at which a key was set, for a mention in another mistake.
func (r *Report) Where(key string) string { return r.problem(r.OriginOf(key), "", "").where() }

// Problem is one mistake, or one thing worth a warning.
type Problem struct {
	// File is the path as it was given to [NewReport]; empty when the value came
	// from elsewhere.
	File string `json:"file,omitempty"`
	// Line and Column count from 1; both are 0 when the problem is the file
	// itself, which is missing for example.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Origin names the variable or flag that the value came from; empty for a
	// value of the file.
	Origin string `json:"origin,omitempty"`
	// Key is the dotted key, as far as one is concerned.
	Key string `json:"key,omitempty"`
	// Text says what is wrong and what to write instead. It holds no secret.
	Text string `json:"text"`
	// Unread says that a file cannot be read, Denied that it is for lack of a right.
	Unread, Denied bool `json:"-"`
}

// String is "config.yaml:3:5: …", or "OBSERVERD_…: …".
func (p Problem) String() string {
	if where := p.where(); where != "" {
		return where + ": " + p.Text
	}
	return p.Text
}

func (p Problem) where() string {
	switch {
	case p.Origin != "":
		return p.Origin
	case p.Line > 0:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
	return p.File
}

// Sort brings problems into the order of the files and of what is in them, and then by the name of the
// variable or flag.
func Sort(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Origin, b.Origin),
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Text, b.Text),
		)
	})
}
