package pgtest

import (
	"errors"
	"strings"
	"testing"
)

func TestBindirIsNotReplacedByAnother(t *testing.T) {
	t.Setenv("PGTEST_BINDIR", t.TempDir())
	if _, err := Open(t.Context(), Options{}); !errors.Is(err, errNoBinaries) {
		t.Errorf("an empty PGTEST_BINDIR gave %v, want errNoBinaries", err)
	}
}

func TestInstallNamesTheWaysOut(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	p := product()
	p.Folders = nil
	_, err := p.Programs(t.Context())
	for _, word := range []string{"PGTEST_BINDIR", "PGTEST_URL", "initdb"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the error %v does not mention %s", err, word)
		}
	}
}
