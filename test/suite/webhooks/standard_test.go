// Package webhooks_test holds package webhooks against the library of the standard.
package webhooks_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/observerd/observerd/webhooks"
)

const text = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

var (
	body = []byte(`{"note":"a \"b\" ü"}` + "\n")
	now  = time.Now()
)

func both(t *testing.T) (*standard.Webhook, webhooks.Secret) {
	t.Helper()
	theirs, err := standard.NewWebhook(text)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := webhooks.ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return theirs, ours
}

func header(signature string) http.Header {
	h := http.Header{}
	h.Set(webhooks.ID, "3a5de2f5")
	h.Set(webhooks.Timestamp, strconv.FormatInt(now.Unix(), 10))
	h.Set(webhooks.Signature, signature)
	return h
}

func TestTheStandardVerifiesWhatWeSign(t *testing.T) {
	t.Parallel()
	theirs, ours := both(t)
	other, err := webhooks.ParseSecret("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	if err != nil {
		t.Fatal(err)
	}
	for name, secrets := range map[string][]webhooks.Secret{"one": {ours}, "two": {other, ours}} {
		if err := theirs.Verify(body, header(webhooks.Sign("3a5de2f5", now, body, secrets...))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := theirs.Verify(body, header(webhooks.Sign("3a5de2f5", now, body, other))); err == nil {
		t.Error("the standard takes a signature of another secret")
	}
}

func TestWeVerifyWhatTheStandardSigns(t *testing.T) {
	t.Parallel()
	theirs, ours := both(t)
	signature, err := theirs.Sign("3a5de2f5", now, body)
	if err != nil {
		t.Fatal(err)
	}
	if err := webhooks.Verify(header(signature), body, 0, ours); err != nil {
		t.Error(err)
	}
	if err := webhooks.Verify(header(signature), body[1:], 0, ours); err == nil {
		t.Error("a signature of another body fits")
	}
}
