package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDoctorSaysWhatToMend has a file that is no database: the doctor finds
// nothing in it, so nothing is printed but what is wrong with the file itself.
func TestDoctorSaysWhatToMend(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notes.db")
	if err := os.WriteFile(path, []byte("These are somebody's notes, and no database."), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, output := range []string{"text", "json"} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{
			"doctor", "--watch", "0", "-o", output, "--config", "testdata/config.yaml", "--set", "database.url=sqlite:" + path,
		}, nil, strings.NewReader(""), &stdout, &stderr)
		if code != exitConfiguration || stdout.Len() > 0 || !strings.Contains(stderr.String(), path+" is left as it is; name another file at database.url") {
			t.Errorf("exit code %d, want %d; it says %q and %q", code, exitConfiguration, stdout.String(), stderr.String())
		}
		if strings.Contains(stderr.String(), "Grant") {
			t.Errorf("no right is missing: %s", stderr.String())
		}
	}
}
