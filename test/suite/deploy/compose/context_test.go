package compose_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// junk is what a working folder has beside the source, and must not leave it.
var junk = []string{
	".env", ".git/config", ".git/objects/pack/pack-1.pack", ".cache/cover.out", "bin/observerd", "var/observerd.db",
	"var/observerd.db-wal", "secret.yaml", "config.local.yaml", "events.jsonl", "go.work", "cmd/observerd/.env",
	"cmd/observerd/observerd", "internal/app/password", "internal/app/prod.env", "internal/lockdb/copy.db", "migrations/backup.sql",
	"migrations/postgres/dump.db", "internal/admin/sample/customers.sql", "internal/config/testdata/real.yaml",
	"internal/web/server.key", "deploy/compose/.env", "node_modules/x/index.js", "id_ed25519",
}

// source returns the files of the repository that git knows or would add.
func source(t *testing.T) []string {
	t.Helper()
	git := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = root
	out, err := git.Output()
	must(t, err)
	var files []string
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		// It may just have been removed.
		if info, err := os.Stat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	return files
}

// buildContext returns those files of a folder that an engine sends. It applies
// .dockerignore to each file and to the folders above it. Engines differ in which
// of the ignored folders they look into for something that is not: all of them do
// where an exception names the folder as it is, and so it must.
func buildContext(t *testing.T, folder string) (files []string) {
	t.Helper()
	patterns, err := ignorefile.ReadAll(strings.NewReader(read(t, ".dockerignore")))
	must(t, err)
	matcher, err := patternmatcher.New(patterns)
	must(t, err)
	must(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(folder, path)
		if err := errors.Join(err, relErr); err != nil || name == "." {
			return err
		}
		ignored, err := matcher.MatchesOrParentMatches(name)
		switch {
		case entry.IsDir() && ignored && !named(matcher, name):
			return fs.SkipDir
		case !entry.IsDir() && !ignored:
			files = append(files, name)
		}
		return err
	}))
	return files
}

// named reports whether an exception leads into a folder.
func named(matcher *patternmatcher.PatternMatcher, folder string) bool {
	return slices.ContainsFunc(matcher.Patterns(), func(p *patternmatcher.Pattern) bool {
		return p.Exclusion() && strings.HasPrefix(p.String(), folder+"/")
	})
}

func copied(t *testing.T, files []string, from, to string) {
	t.Helper()
	for _, name := range files {
		target := filepath.Join(to, name)
		must(t, os.MkdirAll(filepath.Dir(target), 0o750))
		info, err := os.Stat(filepath.Join(from, name))
		must(t, err)
		text, err := os.ReadFile(filepath.Join(from, name))
		must(t, err)
		must(t, os.WriteFile(target, text, info.Mode().Perm()))
	}
}

// TestBuildContext makes a folder with source and junk, sees what docker would send
// of it, and builds the daemon from that alone, as the Dockerfile does.
func TestBuildContext(t *testing.T) {
	t.Parallel()
	folder, sent := t.TempDir(), t.TempDir()
	all := source(t)
	copied(t, all, root, folder)
	for _, name := range junk {
		if slices.Contains(all, name) {
			t.Fatalf("%s is no junk: it is in the repository", name)
		}
		path := filepath.Join(folder, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o750))
		must(t, os.WriteFile(path, []byte("password"), 0o600))
	}
	context := buildContext(t, folder)
	for _, name := range context {
		if slices.Contains(junk, name) || strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s is sent", name)
		}
	}
	copied(t, context, folder, sent)
	buildFrom(t, sent)
}

// buildFrom runs what the Dockerfile runs.
func buildFrom(t *testing.T, folder string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	environ := append(os.Environ(), "VERSION=1.2.3", "COMMIT=0123abc", "COMMIT_DATE=2026-11-20T09:14:03Z", "TARGETOS=", "TARGETARCH=", "GOPROXY=off")
	for _, i := range stages(t)[1] {
		_, command := i.flags()
		if i.name != "RUN" || !strings.Contains(command, "make build") {
			continue
		}
		build := exec.CommandContext(ctx, "/bin/sh", "-c", command)
		build.Dir, build.Env = folder, environ
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		out, err := exec.CommandContext(ctx, filepath.Join(folder, "bin", "observerd"), "version").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "1.2.3") || !strings.Contains(string(out), "0123abc") {
			t.Errorf("what was built says: %s (%v)", out, err)
		}
		return
	}
	t.Fatal("the Dockerfile builds nothing")
}
