package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

const (
	// verifiedClients is the client_auth_type that requires a verified
	// certificate of every client.
	verifiedClients = "RequireAndVerifyClientCert"
	// oldestTLS is the oldest version that is accepted.
	oldestTLS = tls.VersionTLS12
)

const tlsSection = "tls_server_config"

// tls checks the certificates and which clients have to present one.
func (w webConfig) tls(t toolkit.TLSConfig) {
	for key, version := range map[string]toolkit.TLSVersion{"min_version": t.MinVersion, "max_version": t.MaxVersion} {
		if version < oldestTLS {
			w.Reject(join(tlsSection, key), "TLS before 1.2 is not safe; write TLS12 or TLS13")
		}
	}
	if t.MaxVersion < t.MinVersion {
		w.Reject(join(tlsSection, "max_version"), "max_version is below min_version; raise it, or remove it")
	}
	if !t.IsEnabled() {
		return
	}
	certificate, _ := w.pem("cert", t.TLSCertPath, t.TLSCert)
	key, _ := w.pem("key", t.TLSKeyPath, string(t.TLSKey))
	if certificate != nil && key != nil {
		if _, err := tls.X509KeyPair(certificate, key); err != nil {
			w.Reject(tlsSection, "certificate and key cannot be used ("+err.Error()+"); write those that belong together, in PEM form")
		}
	}
	w.clients(t)
}

// clients checks how clients authenticate by certificate.
func (w webConfig) clients(t toolkit.TLSConfig) {
	types := strings.Fields("NoClientCert RequestClientCert RequireAnyClientCert RequireClientCert VerifyClientCertIfGiven " + verifiedClients)
	given := cmp.Or(t.ClientAuth, "NoClientCert")
	authorities, at := w.pem("client_ca", t.ClientCAs, t.ClientCAsText)
	switch {
	case authorities == nil: // That was reported.
	case !slices.Contains(types, given):
		w.Reject(join(tlsSection, "client_auth_type"), quote(given)+" is not a client_auth_type; write "+either(types))
	case t.ClientCAs == "" && t.ClientCAsText == "":
	case !x509.NewCertPool().AppendCertsFromPEM(authorities):
		w.Reject(at, "it holds no certificate in PEM form; write that of the authority that signs the clients' certificates")
	case given == "NoClientCert":
		w.Reject(at, "no client is asked for a certificate; write client_auth_type: "+verifiedClients+" as well, or remove it")
	}
}

// pem returns the text of cert, key or client_ca, which is in the web configuration
// or in the file that the key with _file names, and the key that was used. The text is
// nil after a mistake. The file's name is repeated, because it may have been completed,
// unless it is no name.
func (w webConfig) pem(key, file, inline string) (text []byte, at string) {
	switch at = join(tlsSection, key); {
	case file == "" && inline == "" && key != "client_ca":
		w.Reject(tlsSection, key+"_file is missing; write it")
		return nil, at
	case file == "":
		return []byte(inline), at
	}
	at += "_file"
	if strings.Contains(file, "-----") {
		w.Reject(at, key+"_file is not the name of a file; name one, or write the text at "+key)
		return nil, at
	}
	text, info, why := yamlfile.Read(file)
	if why != nil {
		why.Text = file + ": " + why.Text
		w.RejectFile(at, *why)
		return nil, at
	}
	if key == "key" {
		w.options.warnOfReaders(w.Report, at, file, info)
	}
	return append([]byte{}, text...), at // Not nil.
}
