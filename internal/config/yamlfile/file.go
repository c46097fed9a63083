// Package yamlfile reads a YAML file for a caller that names each mistake in it by
// line and column. A [Report] notes where each key was set, in the file or elsewhere,
// and what is wrong there. The package knows no keys: the caller walks the nodes with
// [Report.Entries] and its like.
package yamlfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/internal/config/fileowner"
	"github.com/observerd/observerd/internal/fn"
)

// maxFile bounds the size of a file, so that a path such as /dev/zero is a mistake
// and does not fill the memory of the host.
const maxFile = 1 << 20

// Unreadable is why a file cannot be read.
type Unreadable struct {
	// Text says what to do. It does not name the file, which may be a secret that
	// was written in the wrong place.
	Text string
	// Denied says that this user may not read it.
	Denied bool
	// Missing says that there is no such file.
	Missing bool
}

// Files returns the files that a path names: itself, or those of a folder whose names
// end in .yaml and begin with no dot, sorted by name.
func Files(path string) ([]string, *Unreadable) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, nil // What is wrong is found when it is read.
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, whyUnreadable(path, err)
	}
	var files []string
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case filepath.Ext(e.Name()) == ".yaml":
			files = append(files, filepath.Join(path, e.Name()))
		case filepath.Ext(e.Name()) == ".yml":
			return nil, &Unreadable{Text: fmt.Sprintf("%q is not read, as its name does not end in .yaml; rename it, or move it away", e.Name())}
		}
	}
	if len(files) == 0 {
		return nil, &Unreadable{Text: "no file in this folder has a name that ends in .yaml; add one, or name the right folder"}
	}
	return files, nil
}

// pipeTimeout is how long the writer of a pipe may take, as in --config <(program).
const pipeTimeout = 10 * time.Second

// Read reads a file of at most 1 MiB. A pipe has ten seconds to bring it.
func Read(path string) ([]byte, fs.FileInfo, *Unreadable) {
	// A pipe may have no writer, or one that writes nothing: that must not keep the
	// program from ending when it is told to.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, whyUnreadable(path, err)
	}
	defer f.Close()                                    // It was only read: there is nothing to lose.
	_ = f.SetReadDeadline(time.Now().Add(pipeTimeout)) // Files other than pipes have none, and need none.
	info, err := f.Stat()
	if err != nil {
		return nil, nil, whyUnreadable(path, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, nil, whyUnreadable(path, err)
	}
	if len(text) > maxFile {
		return nil, nil, &Unreadable{Text: "the file is larger than 1 MiB; name the right file"}
	}
	return text, info, nil
}

func whyUnreadable(path string, err error) *Unreadable {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Unreadable{Text: "the file does not exist; create it, or name the right file", Missing: true}
	case errors.Is(err, fs.ErrPermission):
		return &Unreadable{Text: whyDenied(path), Denied: true}
	case errors.Is(err, syscall.EISDIR):
		return &Unreadable{Text: "this is a directory; name a file in it"}
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return &Unreadable{Text: fmt.Sprintf("the file cannot be read (%v); name the right file", err)}
}

// whyDenied says what has to be changed: the file, or a folder above it where the
// owner of the file cannot be seen.
func whyDenied(path string) string {
	text := "the file may not be read by " + fileowner.Me()
	if owner := fileowner.OfPath(path); owner != "" {
		return text + ": " + owner + "; change its owner or mode, or run this as a user who may"
	}
	return text + ", who may not enter a folder above it; change the mode of that, or run this as a user who may"
}

// Document parses the text, which must be one YAML document that is a mapping. empty
// and otherwise say of another text what to write. The result is nil after a mistake.
func (r *Report) Document(text []byte, empty, otherwise string) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	if errors.Is(err, io.EOF) || err == nil && IsNull(first.Content[0]) {
		r.RejectAt(Start(), "", empty)
		return nil
	}
	if err == nil {
		err = decoder.Decode(&second)
	}
	switch {
	case err == nil:
		r.RejectAt(Position(&second), "", "a second document begins here; keep one and remove the line ---")
	case !errors.Is(err, io.EOF):
		r.RejectAt(locate(text, err), "", syntaxText(err))
	case first.Content[0].Kind != yaml.MappingNode:
		r.RejectAt(Position(first.Content[0]), "", otherwise)
	default:
		return first.Content[0]
	}
	return nil
}

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
		"did not find expected node content":                           "use a value here, or quote it",
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
	readers := fn.Each(lines, bytes.NewReader)
	decoder := yaml.NewDecoder(io.MultiReader(fn.Each(readers, func(r *bytes.Reader) io.Reader { return r })...))
	for decoder.Decode(new(yaml.Node)) == nil { // The readers know.
	}
	return len(fn.Only(readers, func(r *bytes.Reader) bool { return r.Len() < int(r.Size()) }))
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
func firstColumn(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " \t")) + 1 }
