// Package webhooks signs and verifies webhooks as Standard Webhooks 1.0 describes them
// (https://www.standardwebhooks.com), with a shared secret.
//
// A receiver verifies the bytes of the body as they came, before it decodes them, and
// remembers the id: a webhook may come more than once, each time under the same id.
//
//	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
//	…
//	if err := webhooks.Verify(r.Header, body, 0, secret); err != nil {
//		http.Error(w, err.Error(), http.StatusUnauthorized)
//		return
//	}
//	id := r.Header.Get(webhooks.ID)
package webhooks

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a webhook.
const (
	ID        = "Webhook-Id"
	Timestamp = "Webhook-Timestamp"
	Signature = "Webhook-Signature"
)

// Tolerance is how far the timestamp of a webhook may be from the receiver's clock where
// the receiver does not say it.
const Tolerance = 5 * time.Minute

// The errors of Verify, which it may wrap.
var (
	// ErrMalformed says that a header is missing, or is none of a webhook.
	ErrMalformed = errors.New("no headers of a signed webhook")
	// ErrTooOld says that the webhook was sent too long ago: it may be a repeat by somebody
	// who has recorded it, or a clock is wrong.
	ErrTooOld = errors.New("the webhook is too old, or the clock of the receiver is ahead")
	// ErrTooNew says that the webhook is from the future: a clock is wrong.
	ErrTooNew = errors.New("the webhook is from the future, or the clock of the receiver is behind")
	// ErrSignature says that no signature is that of a secret over this id, time and body.
	ErrSignature = errors.New("no signature of the webhook fits")
)

const (
	prefix           = "whsec_"
	minKey, maxKey   = 24, 64 // bytes, by the standard
	version          = "v1,"
	secretsAreCalled = prefix + " and 24 to 64 random bytes in base64"
)

// Secret is what the sender and the receiver share. It prints as ***. The zero value is
// no secret, which signs and verifies nothing.
type Secret struct {
	key *[]byte // A pointer, of which fmt prints the address where a Secret is in an unexported field.
}

// ParseSecret reads a secret: whsec_ and 24 to 64 bytes in base64, as from
// "whsec_$(openssl rand -base64 32)". The error does not repeat it.
func ParseSecret(text string) (Secret, error) {
	encoded, _ := strings.CutPrefix(strings.TrimSpace(text), prefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case err != nil:
		return Secret{}, errors.New("the secret is not base64; use " + secretsAreCalled)
	case len(key) < minKey || len(key) > maxKey:
		return Secret{}, fmt.Errorf("the secret has %d bytes; use %s", len(key), secretsAreCalled)
	}
	return Secret{&key}, nil
}

// String hides the secret, as the methods below do.
func (s Secret) String() string { return "***" }

// GoString is for %#v.
func (s Secret) GoString() string { return "webhooks.Secret(***)" }

// Sign returns the value of the header [Signature]: one signature for each of the secrets,
// of which a receiver needs to know one. The id, which holds no dot, stays the same when
// the webhook is sent again; at is the time of this attempt, whose Unix seconds are the
// header [Timestamp].
func Sign(id string, at time.Time, body []byte, secrets ...Secret) string {
	var signatures []string
	for _, s := range secrets {
		if s.key != nil {
			signatures = append(signatures, version+base64.StdEncoding.EncodeToString(s.sum(id, at.Unix(), body)))
		}
	}
	return strings.Join(signatures, " ")
}

func (s Secret) sum(id string, at int64, body []byte) []byte {
	mac := hmac.New(sha256.New, *s.key)
	_, _ = fmt.Fprintf(mac, "%s.%d.", id, at) // A hash takes everything.
	_, _ = mac.Write(body)
	return mac.Sum(nil)
}

// Verify reports whether somebody who knows one of the secrets has sent the webhook, at a
// time that is within the tolerance; 0 stands for [Tolerance]. The body is that of the
// request, byte for byte. Signatures of other versions than v1 are passed over.
func Verify(header http.Header, body []byte, tolerance time.Duration, secrets ...Secret) error {
	tolerance = cmp.Or(tolerance, Tolerance)
	id, stamp := header.Get(ID), header.Get(Timestamp)
	at, err := strconv.ParseInt(stamp, 10, 64)
	switch {
	case id == "" || strings.Contains(id, "."): // With a dot, parts could be moved between id, time and body.
		return fmt.Errorf("%w: no %s", ErrMalformed, strings.ToLower(ID))
	case err != nil || stamp != strconv.FormatInt(at, 10):
		return fmt.Errorf("%w: no %s in seconds since 1970", ErrMalformed, strings.ToLower(Timestamp))
	case header.Get(Signature) == "":
		return fmt.Errorf("%w: no %s", ErrMalformed, strings.ToLower(Signature))
	}
	now := time.Now()
	switch sent := time.Unix(at, 0); {
	case sent.Before(now.Add(-tolerance)):
		return ErrTooOld
	case sent.After(now.Add(tolerance)):
		return ErrTooNew
	}
	for _, given := range strings.Fields(header.Get(Signature)) {
		encoded, known := strings.CutPrefix(given, version)
		signature, err := base64.StdEncoding.DecodeString(encoded)
		for _, s := range secrets {
			if known && err == nil && s.key != nil && hmac.Equal(signature, s.sum(id, at, body)) {
				return nil
			}
		}
	}
	return ErrSignature
}
