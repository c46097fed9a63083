package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/internal/config/fileowner"
)

// maxFile bounds what is read as a configuration, so that a path such as
// /dev/zero is a mistake and not the end of the host's memory.
const maxFile = 1 << 20

// readFile returns the root mapping of the file, or nil when there is none to
// go on with; then the ledger says why.
func (l *loader) readFile() *yaml.Node {
	text, info, why := readLimited(l.file)
	if why != nil {
		l.refuse("", *why)
		return nil
	}
	l.info = info
	return l.document(text)
}

// refusal is why a file cannot be read.
type refusal struct {
	text string
	// missing says that there is no such file, denied that this user may not
	// read it.
	missing, denied bool
}

// pipeTimeout is how long somebody may take who writes a file while it is read,
// as in --config <(program).
const pipeTimeout = 10 * time.Second

// readLimited reads a file. The reason why it cannot does not name the file,
// which may be a secret that was written in the wrong place.
func readLimited(path string) ([]byte, fs.FileInfo, *refusal) {
	// A pipe may have nobody at its other end, or somebody who says nothing: that
	// must not keep the program from ending when it is told to.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, whyUnreadable(path, err)
	}
	defer f.Close()                                    // It was only read: there is nothing to lose.
	_ = f.SetReadDeadline(time.Now().Add(pipeTimeout)) // What is no pipe has none, and needs none.
	info, err := f.Stat()
	if err != nil {
		return nil, nil, whyUnreadable(path, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, nil, whyUnreadable(path, err)
	}
	if len(text) > maxFile {
		return nil, nil, &refusal{text: "the file is larger than 1 MiB; name the right file"}
	}
	return text, info, nil
}

func whyUnreadable(path string, err error) *refusal {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &refusal{text: "the file does not exist; create it, or name the right file", missing: true}
	case errors.Is(err, fs.ErrPermission):
		return &refusal{text: whyDenied(path), denied: true}
	case errors.Is(err, syscall.EISDIR):
		return &refusal{text: "this is a directory; name a file in it"}
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return &refusal{text: fmt.Sprintf("the file cannot be read (%v); name the right file", err)}
}

// whyDenied says what has to be changed: the file, or a folder above it where
// not even its owner can be seen.
func whyDenied(path string) string {
	text := "the file may not be read by " + fileowner.Me()
	if whose := fileowner.OfPath(path); whose != "" {
		return text + ": " + whose + "; change its owner or mode, or run this as a user who may"
	}
	return text + ", who may not enter a folder above it; change the mode of that, or run this as a user who may"
}

// document parses the text, which must be one YAML document that is a mapping.
func (l *ledger) document(text []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	if errors.Is(err, io.EOF) || err == nil && isNull(first.Content[0]) {
		l.rejectAt(origin{fromFile, 1, 1, ""}, "", "the file is empty; start from the config.yaml that is shipped")
		return nil
	}
	if err == nil {
		err = decoder.Decode(&second)
	}
	switch {
	case errors.Is(err, io.EOF):
		return l.mapping(first.Content[0])
	case err != nil:
		l.rejectAt(locate(text, err), "", syntaxText(err))
	default:
		l.rejectAt(position(&second), "", "a second document begins here; keep one and remove the line ---")
	}
	return nil
}

func (l *ledger) mapping(root *yaml.Node) *yaml.Node {
	if root.Kind != yaml.MappingNode {
		l.rejectAt(position(root), "", "the file is not a mapping; write keys such as database: and sources:")
		return nil
	}
	return root
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

func position(n *yaml.Node) origin {
	return origin{layer: fromFile, line: max(n.Line, 1), column: max(n.Column, 1)}
}
