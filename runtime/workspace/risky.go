package workspace

import (
	"path"
	"slices"
	"strings"
)

// Names that tools of a developer's host execute, or take orders from, once the
// workspace is opened, entered, built, tested or committed there. Compared in
// lower case, since some file systems do not tell .GIT from .git.
var (
	riskyNames = []string{
		// shells, editors, debuggers
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv",
		".zprofile", ".zlogin", ".zlogout", ".inputrc", ".envrc", ".env", ".vimrc", ".exrc", ".nvimrc",
		".gvimrc", ".emacs", ".dir-locals.el", ".gdbinit", ".lldbinit", ".pdbrc", ".pythonrc", ".netrc",
		".tool-versions", ".mise.toml", "mise.toml", ".direnvrc",
		// version control
		".git", ".gitattributes", ".gitmodules", ".gitconfig", ".hgrc", ".pre-commit-config.yaml",
		// Python
		"sitecustomize.py", "usercustomize.py", "conftest.py", "setup.py", "setup.cfg", "pyproject.toml",
		"tox.ini", "noxfile.py", "pytest.ini", "pyvenv.cfg", "pip.conf", ".pypirc",
		// other builds and package managers
		"makefile", "gnumakefile", "justfile", "taskfile.yml", "rakefile", "gemfile", "cmakelists.txt",
		"build.rs", "package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "build.gradle",
		"gradlew", "mvnw", "pom.xml", "configure", "flake.nix", "shell.nix", "default.nix", "go.work",
		"dockerfile", "containerfile", "docker-compose.yml", "docker-compose.yaml", "compose.yml",
		"compose.yaml", "vagrantfile", ".gitlab-ci.yml", "jenkinsfile",
		// agents
		".mcp.json", "claude.md", "claude.local.md", "agents.md", "gemini.md", ".cursorrules",
		".windsurfrules", ".clinerules", "copilot-instructions.md",
	}
	riskyDirs = []string{
		".vscode", ".idea", ".devcontainer", ".github", ".husky", ".cargo", ".ssh", ".claude", ".cursor",
		".codex", ".gemini", ".ipython", ".jupyter", ".vim", ".emacs.d", ".config", ".fleet", ".zed",
	}
	riskySuffixes = []string{".pth", ".code-workspace", ".desktop", ".mk", ".gradle", ".sublime-project"}
	// Beneath .git only these give orders; objects and refs do not.
	riskyGit = []string{"config", "config.worktree", "hooks", "info", "modules", "worktrees", "commondir", "gitdir"}
)

// isRisky judges a path by its names alone.
func isRisky(name string) bool {
	parts := strings.Split(strings.ToLower(name), "/")
	base := parts[len(parts)-1]
	if slices.Contains(riskyNames, base) {
		return true
	}
	for _, suffix := range riskySuffixes {
		if strings.HasSuffix(base, suffix) {
			return true
		}
	}
	for i, part := range parts {
		if slices.Contains(riskyDirs, part) {
			return true
		}
		if part == ".git" && i+1 < len(parts) && slices.Contains(riskyGit, parts[i+1]) {
			return true
		}
	}
	return false
}

// leadsOut reports whether a link at name points out of the workspace: what
// follows it later would read or write there.
func leadsOut(name, target string) bool {
	if target == "" {
		return false
	}
	if path.IsAbs(target) {
		return true
	}
	to := path.Join(path.Dir(name), target)
	return to == ".." || strings.HasPrefix(to, "../")
}
