package redislock

// Settings are those of the configuration.
type Settings = settings

// ServerName is the name that a certificate must have; empty is that of each address.
func ServerName(o Options) (string, error) {
	u, err := o.client()
	if err != nil {
		return "", err
	}
	return u.TLSConfig.ServerName, nil
}
