package yamlfile

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Position is where a node begins in its file.
func Position(n *yaml.Node) Origin {
	return Origin{Layer: FromFile, Line: max(n.Line, 1), Column: max(n.Column, 1)}
}

// IsNull reports whether a node has no value.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// Child returns the value of a key of a mapping, or an empty node.
func Child(n *yaml.Node, key string) *yaml.Node {
	if n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1]
			}
		}
	}
	return &yaml.Node{}
}

// Entries visits the keys of a mapping, each once.
func (r *Report) Entries(n *yaml.Node, path string, visit func(key, value *yaml.Node)) {
	seen := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch first := seen[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.Anchor != "" || key.Value == "<<":
			r.RejectAt(Position(key), path, "this is not a plain key; use a name, without anchors, aliases and merges")
			r.MarkWrong(path) // What a merge would have brought is not missing.
		case first != nil:
			r.rejectTwice(key, path, r.problem(Position(first), "", "").where())
		default:
			seen[key.Value] = key
			visit(key, value)
		}
	}
}

// IsTwice rejects a key that another file has set.
func (r *Report) IsTwice(key *yaml.Node, path string) bool {
	if !r.IsSet(path) {
		return false
	}
	r.rejectTwice(key, path, r.Where(path))
	return true
}

func (r *Report) rejectTwice(key *yaml.Node, path, first string) {
	r.RejectAt(Position(key), path, fmt.Sprintf("the key %s is there already, at %s; remove one of them", QuoteKey(key.Value), first))
}

// IsPlain rejects a value with an anchor, an alias or a tag.
func (r *Report) IsPlain(n *yaml.Node, path string) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		r.SetOrigin(path, Position(n))
		r.Reject(path, "anchors, aliases and tags are not supported; use the value itself, and quote one that begins with *, & or !")
		return false
	}
	return true
}

// Is rejects a node of another kind. A section without a value is one without keys.
func (r *Report) Is(n *yaml.Node, kind yaml.Kind, path, want string) bool {
	if n.Kind != kind && !IsNull(n) {
		r.SetOrigin(path, Position(n))
		r.Reject(path, subject(path)+" is "+want)
	}
	return n.Kind == kind
}

// Text returns the text of a value, or nil after a mistake.
func (r *Report) Text(n *yaml.Node, path, want string) any {
	r.SetOrigin(path, Position(n))
	switch {
	case n.Kind != yaml.ScalarNode || n.Anchor != "":
		r.Reject(path, subject(path)+" is "+want+"; use it without keys or brackets below it")
	case IsNull(n):
		r.Reject(path, subject(path)+" has no value; set one, or remove it")
	default:
		return n.Value
	}
	return nil
}

// Texts returns the texts of a list, without those that are mistakes: want says what an
// entry is.
func (r *Report) Texts(n *yaml.Node, path, want string) []any {
	r.SetOrigin(path, Position(n))
	values := make([]any, 0, len(n.Content))
	for i, item := range n.Content {
		if v := r.Text(item, fmt.Sprintf("%s[%d]", path, i), want); v != nil {
			values = append(values, v)
		} else {
			r.MarkWrong(path)
		}
	}
	return values
}

var printableKey = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// IsPrintable reports whether a text looks like a key. Another may be a secret in the
// wrong place.
func IsPrintable(key string) bool { return printableKey.MatchString(key) }

// QuoteKey is a key in a message.
func QuoteKey(key string) string {
	if IsPrintable(key) {
		return `"` + key + `"`
	}
	return "(not shown)"
}

// LastKey is the last part of a dotted key, for messages.
func LastKey(path string) string {
	key, _, _ := strings.Cut(path[strings.LastIndex(path, ".")+1:], "[")
	return key
}

// subject is what a message speaks of: a key, or an entry of a list.
func subject(path string) string {
	if strings.HasSuffix(path, "]") {
		return "an entry of " + LastKey(path)
	}
	return LastKey(path)
}
