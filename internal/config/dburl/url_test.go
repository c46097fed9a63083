package dburl_test

import (
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config/dburl"
	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/wiring"
)

func TestNetworkURLsAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"oracle://app:p%40%2Fw@h:1521/svc":                    "oracle://app:xxxxx@h:1521/svc",
		"oracle://app:p@h1:1521/svc?server=h2&wallet=/w":      "oracle://app:xxxxx@h1:1521/svc?server=h2&wallet=%2Fw",
		"oracle://app:p@/?connect=(A%3DB)&SSL VERIFY=false":   "oracle://app:xxxxx@/?SSL+VERIFY=false&connect=%28A%3DB%29",
		"oracle://app@h:1521/?SID=X&wallet-password=p":        "oracle://app@h:1521/?SID=X&wallet-password=xxxxx",
		"mysql://app:p@h:3306/wms?tls=true&ssl-key=p":         "mysql://app:xxxxx@h:3306/wms?ssl-key=xxxxx&tls=true",
		"mariadb://app:p@/wms?socket=/run/mysqld/mysqld.sock": "mariadb://app:xxxxx@/wms?socket=%2Frun%2Fmysqld%2Fmysqld.sock",
	} {
		u, err := wiring.Kinds().Servers.ParseURL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if u.String() != want || u.Reveal() != text {
			t.Errorf("%s is shown as %s, want %s", text, u, want)
		}
	}
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	account := func(text string) (string, string) {
		u, err := wiring.Kinds().Servers.ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		id, secret := u.Account()
		return id, secret.Reveal()
	}
	id, secret := account("oracle://app:one@H:1521/svc?ssl=true")
	if id != "oracle://app@h:1521/svc" || strings.Contains(id, "one") {
		t.Errorf("account %s", id)
	}
	for text, same := range map[string][2]bool{
		"oracle://app:one@h:1521/svc?ssl=false":         {true, true},
		"oracle://app:two@h:1521/svc":                   {true, false},
		"oracle://app:one@h:1521/svc?wallet-password=x": {true, false},
		"oracle://other:one@h:1521/svc":                 {false, true},
		"oracle://app:one@h:1521/other":                 {false, true},
		"oracle://app:one@h:1521/svc?sid=X":             {false, true},
		"mysql://app:one@h:1521/svc":                    {false, true},
	} {
		gotID, gotSecret := account(text)
		if (gotID == id) != same[0] || (gotSecret == secret) != same[1] {
			t.Errorf("%s: account %s, want the same: %v; the same secret: %v, want %v", text, gotID, same[0], gotSecret == secret, same[1])
		}
	}
	if id, _ := account("sqlite:x.db"); id != "" {
		t.Errorf("a file has the account %q", id)
	}
}

func TestURLWithoutSecrets(t *testing.T) {
	t.Parallel()
	kinds := wiring.Kinds().Servers
	for text, want := range map[string]string{
		"postgres://app@db:5432/shop?sslmode=disable":               "postgres://app@db:5432/shop?sslmode=disable",
		"postgres://app:hunter2@db/shop":                            "postgres://app:${SHOP_PASSWORD}@db/shop",
		"postgres://db/shop?user=app&password=hunter2":              "postgres://db/shop?password=${SHOP_PASSWORD}&user=app",
		"postgres://app:hunter2@db/shop?sslpassword=hunter2":        "postgres://app:${SHOP_PASSWORD}@db/shop?sslpassword=${SHOP_SSLPASSWORD}",
		"oracle://app:hunter2@db:1521/shop?wallet+password=hunter2": "oracle://app:${SHOP_PASSWORD}@db:1521/shop?wallet+password=${SHOP_WALLET_PASSWORD}",
		"postgres://app:@db/shop?password=":                         "postgres://app@db/shop",
		"sqlite:${HOME}/shop.db":                                    "sqlite:$${HOME}/shop.db",
	} {
		u, err := kinds.ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		got, variables := dburl.WithoutSecrets(u, kinds, "SHOP")
		if got != want || len(variables) != strings.Count(strings.ReplaceAll(want, "$${", ""), "${") {
			t.Errorf("%s: %s, %q, want %s", text, got, variables, want)
		}
	}
}

// TestPlacesThatCannotBe are ports and paths that no database has.
func TestPlacesThatCannotBe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"postgres://u:hunter2@h:99999/d": "not from 1 to 65535", "postgres://u@h:5432,j:65536/d": "not from 1 to 65535", "mysql://u@h:0/d": "not from 1 to 65535",
		"oracle://u@h:151521/d":             "not from 1 to 65535",
		"postgres://u@h:5432,j:65535,i:1/d": "", "sqlite:ä b.db": "",
	} {
		_, err := wiring.Kinds().Servers.ParseURL(text)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if err := new(field.URL).UnmarshalText([]byte("https://hooks.example.org:99999/x")); err == nil || !strings.Contains(err.Error(), "not from 1 to 65535") {
		t.Errorf("a sink: %v", err)
	}
}
