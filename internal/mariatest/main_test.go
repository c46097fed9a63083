package mariatest_test

import (
	"testing"

	"github.com/observerd/observerd/internal/mariatest"
	"github.com/observerd/observerd/internal/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(mariatest.Wrap(m)) }
