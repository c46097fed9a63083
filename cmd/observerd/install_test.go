package main

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGoInstall installs a version as a user does, from a module proxy that is a folder.
// Go refuses it when go.mod has a replace or an exclude, or when a file is missing from
// what git has.
func TestGoInstall(t *testing.T) {
	t.Parallel()
	const module, version = "github.com/observerd/observerd", "v0.0.1"
	proxy, bin := t.TempDir(), t.TempDir()
	folder := filepath.Join(proxy, module, "@v")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"list":            []byte(version + "\n"),
		version + ".info": []byte(`{"Version": "` + version + `"}`),
		version + ".mod":  mod,
		version + ".zip":  moduleZip(t, module+"@"+version),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	downloaded, usual, _ := strings.Cut(strings.TrimSpace(string(cache)), "\n")
	install := exec.CommandContext(t.Context(), "go", "install", module+"/cmd/observerd@"+version)
	install.Dir = bin // Outside of our own module.
	install.Env = append(os.Environ(), "GOBIN="+bin, "GOMODCACHE="+t.TempDir(), "GOFLAGS=-trimpath -modcacherw", "GOWORK=off", "GOSUMDB=off",
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(downloaded, "cache", "download")+","+usual)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "observerd"), "version").Output(); err != nil || !strings.HasPrefix(string(out), "observerd "+version+" ") {
		t.Errorf("%v: %s", err, out)
	}
}

// moduleZip packs the files that git knows or would add, but those of modules below.
func moduleZip(t *testing.T, prefix string) []byte {
	t.Helper()
	git := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = "../.."
	out, err := git.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for _, name := range files {
		if ofModuleBelow(files, name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // It was just removed.
		}
		entry, entryErr := w.Create(prefix + "/" + name)
		if err != nil || entryErr != nil {
			t.Fatal(err, entryErr)
		}
		if _, err := entry.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func ofModuleBelow(files []string, name string) bool {
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if slices.Contains(files, folder+"/go.mod") {
			return true
		}
	}
	return false
}
