package mysql

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// tlsConfig makes the settings of `tls`: true, false (the default),
// skip-verify, preferred, and of the files beside it, which mean true. fallback
// says that a server without TLS is spoken to in the clear.
func tlsConfig(p map[string]string, host string) (config *tls.Config, fallback bool, err error) {
	mode := p["tls"]
	files := p["ssl-ca"] != "" || p["ssl-cert"] != "" || p["ssl-key"] != "" || p["ssl-server-name"] != ""
	switch {
	case mode == "" && files:
		mode = "true"
	case mode == "false" && files, mode == "preferred" && files:
		return nil, false, fmt.Errorf("mysql url: with tls=%s the parameters ssl-… have no effect; set tls=true", mode)
	}
	config = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	switch mode {
	case "", "false":
		return nil, false, nil
	case "true":
	case "preferred":
		config.InsecureSkipVerify = true
		return config, true, nil
	case "skip-verify":
		config.InsecureSkipVerify = true
	default:
		return nil, false, errors.New("mysql url: tls is true, false, skip-verify or preferred")
	}
	if name := p["ssl-server-name"]; name != "" {
		config.ServerName = name
	}
	return config, false, loadFiles(config, p)
}

func loadFiles(config *tls.Config, p map[string]string) error {
	if path := p["ssl-ca"]; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("mysql url: ssl-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return errors.New("mysql url: ssl-ca holds no certificate in PEM form")
		}
	}
	cert, key := p["ssl-cert"], p["ssl-key"]
	if (cert == "") != (key == "") {
		return errors.New("mysql url: ssl-cert and ssl-key are set together")
	}
	if cert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("mysql url: ssl-cert and ssl-key: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return nil
}
