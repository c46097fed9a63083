package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds what is read as a configuration, so that a path such as
// /dev/zero is a mistake and not the end of the host's memory.
const maxFile = 1 << 20

// readFile returns the root mapping of the file, or nil when there is none to
// go on with; then the ledger says why.
func (l *ledger) readFile() *yaml.Node {
	text, reason := readLimited(l.file)
	if reason != "" {
		l.rejectAt(origin{layer: fromFile}, "", reason)
		return nil
	}
	return l.document(text)
}

// readLimited reads a file. The reason why it cannot does not name the file,
// which may be a secret that was written in the wrong place.
func readLimited(path string) (text []byte, reason string) {
	f, err := os.Open(path)
	if err != nil {
		return nil, whyUnreadable(err)
	}
	defer f.Close() // It was only read: there is nothing to lose.
	text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, whyUnreadable(err)
	}
	if len(text) > maxFile {
		return nil, "the file is larger than 1 MiB; name the right file"
	}
	return text, ""
}

const whyDenied = "the file may not be read by this user; change its mode or owner"

func whyUnreadable(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "the file does not exist; create it, or name the right file"
	case errors.Is(err, fs.ErrPermission):
		return whyDenied
	case errors.Is(err, syscall.EISDIR):
		return "this is a directory; name a file in it"
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fmt.Sprintf("the file cannot be read (%v); name the right file", err)
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
