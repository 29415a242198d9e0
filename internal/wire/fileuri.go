package wire

import (
	"net/url"
	"path"
	"strings"
)

// whose is what an address of a file says of who can read it.
type whose uint8

const (
	publicFile whose = iota // anybody: it is on the web
	keptFile                // the account: it is the provider's, or in a bucket
	noFile                  // it cannot be told
)

// fileName is the one name of what an address stands for, however it is written: the
// resource's, such as files/x, of what is with Google, bucket and object of what is in a
// bucket. It is what is remembered and what is looked for.
func fileName(uri string) (name string, w whose) {
	for i := range len(uri) {
		if c := uri[i]; c <= ' ' || c == 0x7f || c == '\\' {
			return "", noFile
		}
	}
	end := strings.IndexAny(uri, ":/?#")
	if end < 0 || uri[end] != ':' {
		return resourceName(uri)
	}
	u, err := url.Parse(uri)
	if err != nil || u.Opaque != "" || u.User != nil || u.Host == "" {
		return "", noFile
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	for i := range len(host) {
		if c := host[i]; !(c == '.' || c == '-' || c == '_' || c == ':' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z') {
			return "", noFile // a name that has to be put into another form first
		}
	}
	if host == "" || strings.HasSuffix(host, ".") {
		return "", noFile
	}
	switch scheme := strings.ToLower(u.Scheme); scheme {
	case "gs", "s3":
		if strings.ContainsAny(u.Host, ":") || strings.Contains(uri, "?") {
			return "", noFile
		}
		_, object, _ := strings.Cut(uri[end+len("://"):], "/") // as it stands: names of objects are not escaped
		object, _, _ = strings.Cut(object, "#")                // a generation of it
		return scheme + "://" + host + "/" + object, keptFile
	case "http", "https":
	default:
		return "", noFile
	}
	switch {
	case host == "storage.cloud.google.com":
		return objectName("", u.Path)
	case host == "googleapis.com" || strings.HasSuffix(host, ".googleapis.com"):
		if bucket, storage := googleBucket(host); storage {
			return objectName(bucket, u.Path)
		}
		if _, api := inAPI(u.Path); api {
			return objectName("", u.Path)
		}
		return resourceName(u.EscapedPath())
	}
	return "", publicFile
}

// googleBucket reports whether a host of Google's APIs is one of buckets, and which
// bucket it names.
func googleBucket(host string) (bucket string, is bool) {
	for _, of := range [...]string{"storage.googleapis.com", "commondatastorage.googleapis.com", "storage-download.googleapis.com", "firebasestorage.googleapis.com"} {
		if host == of {
			return "", true
		}
		if b, under := strings.CutSuffix(host, "."+of); under {
			return b, true
		}
	}
	return "", strings.HasPrefix(host, "storage.") // of a region, or by another way to it
}

// inAPI is what of a path follows the prefix of an API of buckets.
func inAPI(at string) (rest string, is bool) {
	at = strings.TrimLeft(at, "/")
	for _, use := range [...]string{"download/", "upload/", "resumable/upload/", ""} {
		for _, api := range [...]string{"storage/v1/b/", "v0/b/"} {
			if rest, is = strings.CutPrefix(at, use+api); is {
				return rest, true
			}
		}
	}
	return "", false
}

// objectName is the name of an object in a bucket, which stands in the path if it is not
// that of the host.
func objectName(bucket, at string) (name string, w whose) {
	at = strings.TrimLeft(at, "/")
	if rest, api := inAPI(at); api {
		at = strings.Replace(rest, "/o/", "/", 1)
	}
	if bucket == "" {
		bucket, at, _ = strings.Cut(at, "/")
	}
	if bucket == "" {
		return "", noFile
	}
	return "gs://" + strings.ToLower(bucket) + "/" + at, keptFile
}

// resourceName is a resource's name without the version of the API before it and without
// what is asked of it. Ids of files are in small letters, others as they are written.
func resourceName(at string) (name string, w whose) {
	at, _, _ = strings.Cut(at, "#")
	at, _, _ = strings.Cut(at, "?")
	at, err := url.PathUnescape(at)
	if err != nil || strings.ContainsAny(at, "%?#\\") || strings.HasPrefix(at, "//") {
		return "", noFile
	}
	parts := strings.Split(strings.TrimPrefix(path.Clean("/"+at), "/"), "/")
	for len(parts) > 1 && (isVersion(parts[0]) || parts[0] == "upload" || parts[0] == "download") {
		parts = parts[1:]
	}
	parts[0] = strings.ToLower(parts[0])
	last := &parts[len(parts)-1]
	*last, _, _ = strings.Cut(*last, ":")
	name = strings.Join(parts, "/")
	if parts[0] == "files" {
		name = strings.ToLower(name)
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f {
			return "", noFile
		}
	}
	if *last == "" {
		return "", noFile
	}
	return name, keptFile
}

// isVersion reports whether a part of a path is a version of an API: v1, v1beta, V1Beta2.
func isVersion(p string) bool {
	return len(p) > 1 && len(p) < 12 && p[0]|0x20 == 'v' && '0' <= p[1] && p[1] <= '9'
}
