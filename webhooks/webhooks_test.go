package webhooks_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/webhooks"
)

// The example of the standard.
const (
	anID     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	aSecret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	aBody    = `{"test": 2432232314}`
	anAnswer = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

var aTime = time.Unix(1614265330, 0)

func secret(t testing.TB, text string) webhooks.Secret {
	t.Helper()
	s, err := webhooks.ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func header(at time.Time, signature string) http.Header {
	h := http.Header{}
	h.Set("webhook-id", anID)
	h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	h.Set("webhook-signature", signature)
	return h
}

func TestSignAgreesWithTheExampleOfTheStandard(t *testing.T) {
	t.Parallel()
	if got := webhooks.Sign(anID, aTime, []byte(aBody), secret(t, aSecret)); got != anAnswer {
		t.Errorf("signed %s, want %s", got, anAnswer)
	}
}

func TestVerifyTakesOneFittingSignatureInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // The clock stands still.
		old, fresh := secret(t, aSecret), secret(t, "whsec_"+strings.Repeat("MfKQ", 16))
		now := time.Now()
		sign := func(at time.Time, secrets ...webhooks.Secret) http.Header {
			return header(at, webhooks.Sign(anID, at, []byte(aBody), secrets...))
		}
		without := func(name string) http.Header {
			h := sign(now, old)
			h.Del(name)
			return h
		}
		other := func(name, value string) http.Header {
			h := sign(now, old)
			h.Set(name, value)
			return h
		}
		for name, test := range map[string]struct {
			header http.Header
			body   string
			known  []webhooks.Secret
			want   error
		}{
			"one secret":                 {sign(now, old), aBody, []webhooks.Secret{old}, nil},
			"the sender changes first":   {sign(now, fresh, old), aBody, []webhooks.Secret{old}, nil},
			"the receiver changes first": {sign(now, old), aBody, []webhooks.Secret{fresh, old}, nil},
			"another version beside":     {other("webhook-signature", "v1a,x= "+sign(now, old).Get("webhook-signature")), aBody, []webhooks.Secret{old}, nil},
			"at the edge of the past":    {sign(now.Add(-webhooks.Tolerance), old), aBody, []webhooks.Secret{old}, nil},
			"at the edge of the future":  {sign(now.Add(webhooks.Tolerance), old), aBody, []webhooks.Secret{old}, nil},
			"too old":                    {sign(now.Add(-webhooks.Tolerance-time.Second), old), aBody, []webhooks.Secret{old}, webhooks.ErrTooOld},
			"too new":                    {sign(now.Add(webhooks.Tolerance+time.Second), old), aBody, []webhooks.Secret{old}, webhooks.ErrTooNew},
			"another body":               {sign(now, old), aBody + " ", []webhooks.Secret{old}, webhooks.ErrSignature},
			"another id":                 {other("webhook-id", "another"), aBody, []webhooks.Secret{old}, webhooks.ErrSignature},
			"another time":               {other("webhook-timestamp", strconv.FormatInt(now.Unix()+1, 10)), aBody, []webhooks.Secret{old}, webhooks.ErrSignature},
			"another secret":             {sign(now, old), aBody, []webhooks.Secret{fresh}, webhooks.ErrSignature},
			"no secret":                  {sign(now, old), aBody, nil, webhooks.ErrSignature},
			"the zero secret":            {sign(now, webhooks.Secret{}, old), aBody, []webhooks.Secret{{}}, webhooks.ErrSignature},
			"no signature":               {sign(now), aBody, []webhooks.Secret{old}, webhooks.ErrMalformed},
			"no base64":                  {other("webhook-signature", "v1,?"), aBody, []webhooks.Secret{old}, webhooks.ErrSignature},
			"no version":                 {other("webhook-signature", sign(now, old).Get("webhook-signature")[3:]), aBody, []webhooks.Secret{old}, webhooks.ErrSignature},
			"no id":                      {without("webhook-id"), aBody, []webhooks.Secret{old}, webhooks.ErrMalformed},
			"a dot in the id":            {other("webhook-id", "a.b"), aBody, []webhooks.Secret{old}, webhooks.ErrMalformed},
			"no time":                    {without("webhook-timestamp"), aBody, []webhooks.Secret{old}, webhooks.ErrMalformed},
			"a time that is none":        {other("webhook-timestamp", "+1"), aBody, []webhooks.Secret{old}, webhooks.ErrMalformed},
		} {
			if err := webhooks.Verify(test.header, []byte(test.body), 0, test.known...); !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", name, err, test.want)
			}
		}
	})
}

func TestSecretsHaveEnoughBytesAndAreNotPrinted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                    "has 0 bytes",
		"whsec_hunter2":                       "not base64",
		"whsec_aHVudGVyMg==":                  "has 7 bytes",
		"whsec_" + strings.Repeat("MfKQ", 22): "has 66 bytes",
	} {
		if _, err := webhooks.ParseSecret(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	s := secret(t, aSecret+"\n") // As a file has it.
	printed := fmt.Sprintf("%v %+v %#v %v", s, s, s, struct{ s webhooks.Secret }{s})
	if strings.Contains(printed, "49 242") || strings.Contains(printed, "MfKQ") {
		t.Errorf("printed %s", printed)
	}
}

func ExampleVerify() {
	secret, err := webhooks.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		fmt.Println(err)
		return
	}
	body, now := []byte(`{"specversion":"1.0"}`), time.Now()
	request := http.Header{} // That of http.Request, in a handler.
	request.Set(webhooks.ID, "3a5de2f5")
	request.Set(webhooks.Timestamp, strconv.FormatInt(now.Unix(), 10))
	request.Set(webhooks.Signature, webhooks.Sign("3a5de2f5", now, body, secret))

	fmt.Println(webhooks.Verify(request, body, 0, secret))
	fmt.Println(webhooks.Verify(request, []byte("another body"), 0, secret))
	// Output:
	// <nil>
	// no signature of the webhook fits
}
