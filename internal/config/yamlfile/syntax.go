package yamlfile

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The parser's messages are fixed texts, but for the name of an anchor, which
// may be a secret that begins with an asterisk.
var (
	yamlMessage = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	yamlAnchor  = regexp.MustCompile(`anchor '.*'`)
	encodings   = regexp.MustCompile(`UTF-(8|16)|surrogate`)
)

// advice says what to write, for messages of the parser that do not.
func advice(message string) string {
	return map[string]string{
		"mapping values are not allowed in this context":               `quote a value that has ": " in it, and indent keys of one section alike`,
		"did not find expected key":                                    "indent the keys of one section alike, with spaces",
		"did not find expected '-' indicator":                          `begin each entry of the list with "- ", indented alike`,
		"did not find expected ',' or ']'":                             "close the list with ], and the quotes in it",
		"did not find expected ',' or '}'":                             "close the mapping with }, and the quotes in it",
		"did not find expected node content":                           "write a value here, or quote it",
		"could not find expected ':'":                                  `write ": " between key and value`,
		"found character that cannot start any token":                  "indent with spaces instead of tabs, and quote values that begin with @, % or `",
		"found a tab character that violates indentation":              "indent with spaces",
		"found a tab character where an indentation space is expected": "indent with spaces",
		"found unexpected end of stream":                               "close the quote that is opened here",
		"control characters are not allowed":                           plainText,
	}[message]
}

// plainText is the advice for a file in another encoding.
const plainText = "write the file as plain UTF-8 text"

func syntaxText(err error) string {
	_, message := splitMessage(err)
	if strings.Contains(message, "anchor") {
		return yamlAnchor.ReplaceAllString(message, "anchor") + "; quote a value that begins with * or &"
	}
	if encodings.MatchString(message) {
		// The parser counts octets, and its message differs with the text that follows.
		return "the file is not UTF-8; " + plainText
	}
	return message + "; " + cmp.Or(advice(message), "correct the YAML")
}

func splitMessage(err error) (line int, message string) {
	m := yamlMessage.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	if m == nil {
		return 1, "this is not YAML"
	}
	line, _ = strconv.Atoi(m[1])
	return max(line, 1), m[2]
}

// locate finds the line of a syntax error. What the parser reports is often
// the line where the enclosing block began. The parser had to read as far as
// the error, and the line to correct is the one before which the text was
// well-formed: so the search goes back from where the parser stopped.
func locate(text []byte, err error) Origin {
	// Lines to search. Each costs one parse, so there are fewer in a large file.
	far := max(1, min(100, 4*maxFile/(len(text)+1)))
	lines := bytes.SplitAfter(text, []byte("\n"))
	line := parsedLines(lines)
	reported, _ := splitMessage(err)
	for n := line; n >= 1 && n > line-far; n-- {
		if wellFormed(bytes.Join(lines[:n-1], nil)) {
			return Origin{Layer: FromFile, Line: n, Column: firstColumn(lines[n-1])}
		}
	}
	reported = min(reported, len(lines))
	return Origin{Layer: FromFile, Line: reported, Column: firstColumn(lines[reported-1])}
}

// parsedLines returns how many lines the parser reads before it fails.
func parsedLines(lines [][]byte) int {
	r := &lineReader{lines: lines}
	decoder := yaml.NewDecoder(r)
	for decoder.Decode(new(yaml.Node)) == nil { // The reader counts.
	}
	return min(r.taken, len(lines))
}

func wellFormed(text []byte) bool {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		if err := decoder.Decode(new(yaml.Node)); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// firstColumn is the first column that is not blank, in characters.
func firstColumn(line []byte) int {
	return len(line) - len(bytes.TrimLeft(line, " \t")) + 1
}

// lineReader returns one line at a time and counts them.
type lineReader struct {
	lines [][]byte
	taken int
	rest  []byte
}

func (r *lineReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.taken == len(r.lines) {
			return 0, io.EOF
		}
		r.rest = r.lines[r.taken]
		r.taken++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
