package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/internal/config/fileowner"
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
		return nil, &Unreadable{Text: "no file in this folder has a name that ends in .yaml; write one, or name the right folder"}
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
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
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
