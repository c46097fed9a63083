package config

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/internal/config/fileowner"
	"github.com/observerd/observerd/internal/config/yamlfile"
	"github.com/observerd/observerd/internal/fn"
)

// Options say where the configuration comes from.
type Options struct {
	// Paths are the YAML files, and folders with such (*.yaml), repeated in problems
	// as they are given here. They are one configuration in several files: lists and
	// sections join, and a key may be in one of them only. None means defaults,
	// environment and flags only.
	Paths []string
	// Kinds are the kinds of databases, sinks and lock providers.
	Kinds Kinds
	// Environ is the environment as os.Environ returns it: OBSERVERD_…
	// variables set keys, and ${NAME} in a value may name any. nil is an empty
	// environment.
	Environ []string
	// Overrides are what flags set, by dotted key, above all else. Values are
	// texts, numbers, bools or durations.
	Overrides map[string]any
	// FlagNames has, by dotted key, the flag to name in a problem. A key that
	// is missing here is named "--set KEY".
	FlagNames map[string]string
	// StatFS returns the magic number of the file system that holds a path
	// that exists. nil asks the kernel; 0 is an unknown one.
	StatFS func(path string) (uint32, error)
	// OthersMayRead reports whether every user of the host may read a file. nil
	// asks its mode.
	OthersMayRead func(fs.FileInfo) bool
}

// Load reads, layers, decodes and checks the configuration. The warnings are
// in order, and there may be some beside an error. The error is nil or an
// [*Error] with every mistake; the Config is nil then.
func Load(o Options) (*Config, []Problem, error) {
	began := time.Now()
	l := newLoader(o)
	cfg := l.layered()
	if cfg != nil {
		cfg.loaded = began
		l.check(cfg)
	}
	yamlfile.Sort(l.Warnings)
	if len(l.Problems) > 0 {
		yamlfile.Sort(l.Problems)
		return nil, l.Warnings, &Error{Problems: l.Problems}
	}
	return cfg, l.Warnings, nil
}

// loader is one run of Load.
type loader struct {
	resolver
	names names
	// k has the merged layers.
	k *koanf.Koanf
}

// file is a file of the configuration.
type file struct {
	path string
	info fs.FileInfo
	root *yaml.Node
}

func newLoader(o Options) *loader {
	if o.StatFS == nil {
		o.StatFS = statFS
	}
	if o.OthersMayRead == nil {
		o.OthersMayRead = fileowner.OthersMayRead
	}
	return &loader{resolver: resolver{yamlfile.NewReport(""), o, make(map[string]any)}, k: koanf.New(".")}
}

// readFiles returns the files; ok is false after a mistake.
func (l *loader) readFiles() (files []file, ok bool) {
	for _, path := range l.paths() {
		l.File = path
		if slices.ContainsFunc(files, func(f file) bool { return f.path == path }) {
			l.RejectAt(yamlfile.Origin{}, "", "this file is named twice; name it once")
		}
		files = append(files, l.readFile(path))
	}
	return files, len(l.Problems) == 0
}

// paths returns the paths of the files, those of folders too.
func (l *loader) paths() []string {
	var all []string
	for _, given := range l.options.Paths {
		l.File = given
		paths, why := yamlfile.Files(given)
		if why != nil {
			l.RejectFile("", *why)
		}
		all = append(all, paths...)
	}
	return all
}

func (l *loader) readFile(path string) file {
	text, info, why := yamlfile.Read(path)
	if why != nil {
		if why.Missing {
			why.Text = "the file does not exist; create one with 'observerd init URL', or name another file"
		}
		l.RejectFile("", *why)
		return file{path: path}
	}
	root := l.Document(text, "the file is empty; start from the config.yaml that is shipped",
		"the file is not a mapping; use keys such as database: and sources:")
	return file{path, info, root}
}

// layered returns the merged layers, decoded and not checked. It goes on after
// mistakes, unless a file has no tree: the result is nil then.
func (l *loader) layered() *Config {
	files, ok := l.readFiles()
	if !ok {
		return nil
	}
	l.names = scanNames(files, l.options.Environ)
	l.names.kinds = l.options.Kinds.byFamily()
	cfg := l.names.empty()
	r := reader{Report: l.Report, names: l.names, lists: make(map[string][]any)}
	for _, f := range files {
		l.File = f.path
		cfg.files = append(cfg.files, f.path)
		r.in, r.exposed = f, l.options.OthersMayRead(f.info)
		l.layer(r.section(f.root, reflect.ValueOf(cfg).Elem(), ""), "")
	}
	l.File = strings.Join(l.options.Paths, ", ")
	l.environment()
	l.overrides()
	note(l.texts, "", l.k.Raw())
	d := decoder{l.Report, l.names, cfg, l.texts}
	d.names.walk(reflect.ValueOf(cfg).Elem(), "", d.decode)
	return cfg
}

// layer merges values over those of lower layers. With a delimiter the keys are
// dotted. The provider cannot fail: it returns a map.
func (l *loader) layer(values map[string]any, delim string) {
	_ = l.k.Load(confmap.Provider(values, delim), nil)
}

// Problem is one mistake, or one thing worth a warning.
type Problem = yamlfile.Problem

// ErrUnread is what an [*Error] is, for [errors.Is], when nothing is wrong but that
// files cannot be read: they may be there later.
var ErrUnread = errors.New("a file cannot be read")

// Error is every mistake of a configuration, in the order of the file and
// then by the name of the variable or flag. It is the only error of [Load].
type Error struct {
	// Problems has at least one entry.
	Problems []Problem
}

// Error has one line for each mistake.
func (e *Error) Error() string { return strings.Join(fn.Each(e.Problems, Problem.String), "\n") }

// Is makes errors.Is(err, fs.ErrPermission) true when nothing is wrong but
// that files may not be read: then rights have to be given, not keys written. It
// does the same for [ErrUnread].
func (e *Error) Is(target error) bool {
	switch target {
	case fs.ErrPermission:
		return !slices.ContainsFunc(e.Problems, func(p Problem) bool { return !p.Denied })
	case ErrUnread:
		return !slices.ContainsFunc(e.Problems, func(p Problem) bool { return !p.Unread })
	}
	return false
}
