//go:build nightly

package nightly_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVulncheck sees that a look for vulnerabilities that did not happen is never
// taken for one that found nothing.
func TestVulncheck(t *testing.T) {
	t.Parallel()
	const nobody = "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		database, vulncheck, code string
		says                      []string
	}{
		"found":               {vulnerabilities(t, "Errorf"), "", "3", []string{"GO-2026-0001", "a made-up mistake in fmt.Errorf"}},
		"found, and optional": {vulnerabilities(t, "Errorf"), "optional", "3", []string{"GO-2026-0001"}},
		"nothing found":       {vulnerabilities(t, "Sscanln"), "", "0", []string{"No vulnerabilities found"}},
		"no database":         {nobody, "", "1", []string{"NOTHING WAS CHECKED", nobody}},
		"optional":            {nobody, "optional", "0", []string{"NOTHING WAS CHECKED", nobody, "going on all the same"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, said := vulncheck(t, "./test/kit/servertest", "VULNDB="+c.database, "VULNCHECK="+c.vulncheck)
			if code != c.code {
				t.Errorf("exit code %s; want %s", code, c.code)
			}
			for _, want := range c.says {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q, but:\n%s", want, said)
				}
			}
		})
	}
	t.Run("mistake of ours", func(t *testing.T) {
		t.Parallel()
		code, said := vulncheck(t, "./internal/no-such-package", "VULNDB="+vulnerabilities(t, "Errorf"), "VULNCHECK=optional")
		if code != "1" || !strings.Contains(said, "NOTHING WAS CHECKED") {
			t.Errorf("exit code %s:\n%s", code, said)
		}
	})
}

// vulncheck runs what `make vulncheck` runs, with its report elsewhere.
func vulncheck(t *testing.T, pattern string, environ ...string) (code, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), slow)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join("..", "..", "..", "tools", "vuln", "check"), pattern)
	report := filepath.Join(t.TempDir(), "vulncheck.txt")
	cmd.Env = append(append(os.Environ(), "VULNREPORT="+report), environ...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "NOTHING WAS CHECKED") != strings.Contains(string(text), "NOTHING WAS CHECKED") {
		t.Errorf("the report is not what was said:\n%s\nwas\n%s", text, out)
	}
	return fmt.Sprint(cmd.ProcessState.ExitCode()), string(out)
}

// vulnerabilities makes a database with one vulnerability, in a function of the
// package fmt, and returns its URL.
func vulnerabilities(t *testing.T, function string) (url string) {
	t.Helper()
	dir := t.TempDir()
	const id, when = "GO-2026-0001", "2026-01-01T00:00:00Z"
	for name, text := range map[string]string{
		"index/db.json":      `{"modified": "` + when + `"}`,
		"index/modules.json": `[{"path": "stdlib", "vulns": [{"id": "` + id + `", "modified": "` + when + `"}]}]`,
		"index/vulns.json":   `[{"id": "` + id + `", "modified": "` + when + `"}]`,
		"ID/" + id + ".json": `{"schema_version": "1.3.1", "id": "` + id + `", "modified": "` + when + `", "published": "` + when + `",
			"summary": "a made-up mistake in fmt.` + function + `", "details": "a made-up mistake in fmt.` + function + `",
			"affected": [{"package": {"name": "stdlib", "ecosystem": "Go"},
				"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
				"ecosystem_specific": {"imports": [{"path": "fmt", "symbols": ["` + function + `"]}]}}],
			"database_specific": {"url": "https://pkg.go.dev/vuln/` + id + `", "review_status": "REVIEWED"}}`,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "file://" + dir
}

// TestPackageVersions sees that packages sort as the commits do.
func TestPackageVersions(t *testing.T) {
	t.Parallel()
	tool(t, "dpkg", "dpkg")
	last := ""
	for _, c := range []struct{ version, seconds, want string }{
		{"dev", "1767323045", "0.0.0+20260102030405.dev"},
		{"ffff123", "1767323046", "0.0.0+20260102030406.ffff123"},
		{"0000123", "1767323047", "0.0.0+20260102030407.0000123"},
		{"v1.2.0-rc.1", "1", "1.2.0-rc.1"},
		{"1.2.0-rc.1-3-gabc1234", "1", "1.2.0-rc.1+3.gabc1234"},
		{"1.2.0", "1", "1.2.0"},
		{"1.2.0-9-gffff123", "1", "1.2.0+9.gffff123"},
		{"1.2.0-10-g0000123", "1", "1.2.0+10.g0000123"},
		{"1.2.0-10-g0000123-dirty", "1", "1.2.0+10.g0000123.dirty"},
		{"1.2.3", "1", "1.2.3"},
		{"1.2.3-dirty", "1", "1.2.3+dirty"},
	} {
		got := strings.TrimSpace(host(t, soon, filepath.Join("..", "..", "..", "deploy", "packages", "version"), c.version, c.seconds))
		if got != c.want {
			t.Errorf("version %s becomes %s; want %s", c.version, got, c.want)
		}
		// As nfpm writes it.
		debian := strings.Replace(got, "-", "~", 1) + "-1"
		if last != "" {
			host(t, soon, "dpkg", "--compare-versions", last, "lt", debian)
		}
		last = debian
	}
}

// TestReleaseTools looks at what is too large for `make verify`: that the modules
// of the release's tools are tidy, and that goreleaser takes its configuration.
func TestReleaseTools(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	for _, module := range []string{"release", "sbom"} {
		host(t, slow, "go", "-C", filepath.Join(root, "tools", module), "mod", "tidy", "-diff")
	}
	host(t, slow, "sh", "-c", `cd "$0" && exec go tool -modfile=tools/release/go.mod goreleaser check`, root)
}
