package lock_test

import (
	"testing"

	"github.com/observerd/observerd/internal/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }
