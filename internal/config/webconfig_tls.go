package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"strings"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

const (
	// verifiedClients is the client_auth_type that lets in nobody without a
	// certificate that was verified.
	verifiedClients = "RequireAndVerifyClientCert"
	// oldestTLS is the oldest version that is spoken.
	oldestTLS = tls.VersionTLS12
)

const tlsSection = "tls_server_config"

// tls checks the certificates and who has to show one.
func (w webConfig) tls(c *toolkit.Config) {
	t := c.TLSConfig
	w.versions(t)
	if !t.IsEnabled() {
		return
	}
	certificate := w.pem("cert", t.TLSCertPath, t.TLSCert)
	key := w.pem("key", t.TLSKeyPath, string(t.TLSKey))
	if certificate != nil && key != nil {
		if _, err := tls.X509KeyPair(certificate, key); err != nil {
			w.Reject(tlsSection, "certificate and key cannot be used ("+err.Error()+"); write those that belong together, in PEM form")
		}
	}
	w.clients(t)
}

// versions refuses what is no longer safe.
func (w webConfig) versions(t toolkit.TLSConfig) {
	for key, version := range map[string]toolkit.TLSVersion{"min_version": t.MinVersion, "max_version": t.MaxVersion} {
		if version < oldestTLS {
			w.Reject(join(tlsSection, key), "TLS before 1.2 is not safe; write TLS12 or TLS13")
		}
	}
	if t.MaxVersion < t.MinVersion {
		w.Reject(join(tlsSection, "max_version"), "max_version is below min_version; raise it, or remove it")
	}
}

// pem returns the text of cert or key: that of its file, or the one that
// stands in the web configuration itself. nil is a mistake that was noted.
func (w webConfig) pem(key, file, inline string) []byte {
	at := join(tlsSection, key+"_file")
	switch {
	case file != "":
		return w.named(at, file)
	case inline == "":
		w.Reject(tlsSection, key+"_file is missing; write it")
		return nil
	}
	return []byte(inline)
}

// named returns what is in a file, or nil after a mistake was noted. The name is
// repeated, because it may have been completed, unless it is no name.
func (w webConfig) named(at, file string) []byte {
	if strings.Contains(file, "-----") {
		w.Reject(at, yamlfile.LastKey(at)+" is not the name of a file; name one, or write the text at "+strings.TrimSuffix(yamlfile.LastKey(at), "_file"))
		return nil
	}
	text, info, why := yamlfile.Read(file)
	if why != nil {
		why.Text = file + ": " + why.Text
		w.RejectFile(at, *why)
		return nil
	}
	if at == join(tlsSection, "key_file") {
		w.options.warnOfReaders(w.Report, at, file, info)
	}
	return append([]byte{}, text...) // Not nil.
}

// clients checks how clients show who they are.
func (w webConfig) clients(t toolkit.TLSConfig) {
	at := join(tlsSection, "client_auth_type")
	authorities := []byte(t.ClientCAsText)
	if t.ClientCAs != "" {
		if authorities = w.named(join(tlsSection, "client_ca_file"), t.ClientCAs); authorities == nil {
			return
		}
	}
	switch {
	case !isClientAuthType(t.ClientAuth):
		w.Reject(at, quote(t.ClientAuth)+" is not a client_auth_type; write "+either(clientAuthTypes()))
	case t.ClientCAs == "" && t.ClientCAsText == "":
	case !x509.NewCertPool().AppendCertsFromPEM(authorities):
		w.Reject(w.whereAuthorities(t), "it holds no certificate in PEM form; write that of the authority that signs the clients' certificates")
	case cmp.Or(t.ClientAuth, "NoClientCert") == "NoClientCert":
		w.Reject(w.whereAuthorities(t), "no client is asked for a certificate; write client_auth_type: "+verifiedClients+" as well, or remove it")
	}
}

func (w webConfig) whereAuthorities(t toolkit.TLSConfig) string {
	if t.ClientCAs != "" {
		return join(tlsSection, "client_ca_file")
	}
	return join(tlsSection, "client_ca")
}
