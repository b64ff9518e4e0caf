package egress

// FromRegistries is the From of the rules of Registries.
const FromRegistries = "registries"

// Registries are the hosts from which packages are installed, as far as they only give. Those that also take (a package
// that somebody publishes is a way out for a secret) may only be read, so what goes to them is looked into.
func Registries() []Rule {
	var rules []Rule
	for _, host := range []string{
		"pypi.org", "files.pythonhosted.org", // Python
		"proxy.golang.org", "sum.golang.org", // Go
		"index.crates.io", "static.crates.io", // Rust
		"index.rubygems.org",                       // Ruby
		"repo.maven.apache.org", "repo1.maven.org", // Java
		"services.gradle.org",               // Gradle itself
		"repo.hex.pm", "repo.packagist.org", // Elixir, PHP
		"deb.debian.org", "security.debian.org", // Debian
		"archive.ubuntu.com", "security.ubuntu.com", // Ubuntu
		"dl-cdn.alpinelinux.org", // Alpine
	} {
		rules = append(rules, Rule{Host: host, From: FromRegistries})
	}
	for _, host := range []string{
		"registry.npmjs.org", "registry.yarnpkg.com", "npm.jsr.io", "jsr.io", // JavaScript
		"rubygems.org", "api.nuget.org", "pub.dev", // Ruby, .NET, Dart
		"plugins.gradle.org",                                                         // Gradle
		"registry-1.docker.io", "auth.docker.io", "production.cloudflare.docker.com", // images
	} {
		rules = append(rules, Rule{Host: host, Methods: []string{"GET", "HEAD"}, From: FromRegistries})
	}
	return rules
}
