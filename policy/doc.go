// Package policy holds what a sandbox may do and use, as a value that can only
// be narrowed.
//
// A policy starts from the built-in default. The operator's config.toml may
// replace its values; every layer below (a policy file, a manifest, a request)
// can only take away. Each value knows the layer that set it, and each vain
// wish for more is kept as a Clamp:
//
//	file, err := policy.LoadDocument("strict.toml")
//	if err != nil {
//		return err // with file, line, column and the nearest known name
//	}
//	effective := policy.Builtin().Operator("config.toml", config).Narrow("strict.toml", file)
//	if err := effective.Policy.Validate(); err != nil {
//		return err
//	}
//	profile, err := effective.Policy.SeccompProfile("amd64")
//
// The package protects nothing by itself: it decides, and package runtime
// enforces. Denied Python imports are advice even then. Paths are compared as
// text; whoever opens them must resolve links.
package policy
