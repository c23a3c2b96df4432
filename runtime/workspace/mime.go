package workspace

import (
	"path"
	"strings"
)

// mimeTypes is a table of our own: the one of the standard library depends on
// which files the host happens to have in /etc.
var mimeTypes = map[string]string{
	".avif": "image/avif", ".bmp": "image/bmp", ".gif": "image/gif", ".ico": "image/x-icon",
	".jpeg": "image/jpeg", ".jpg": "image/jpeg", ".png": "image/png", ".svg": "image/svg+xml",
	".tif": "image/tiff", ".tiff": "image/tiff", ".webp": "image/webp",
	".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".wav": "audio/wav",
	".mp4": "video/mp4", ".webm": "video/webm",
	".css": "text/css", ".csv": "text/csv", ".htm": "text/html", ".html": "text/html",
	".js": "text/javascript", ".log": "text/plain", ".md": "text/markdown", ".py": "text/x-python",
	".tsv": "text/tab-separated-values", ".txt": "text/plain",
	".gz": "application/gzip", ".ipynb": "application/x-ipynb+json", ".json": "application/json",
	".jsonl": "application/jsonl", ".npy": "application/x-npy", ".npz": "application/x-npz",
	".parquet": "application/vnd.apache.parquet", ".pdf": "application/pdf",
	".tar": "application/x-tar", ".toml": "application/toml", ".xml": "application/xml",
	".yaml": "application/yaml", ".yml": "application/yaml", ".zip": "application/zip",
	".zst": "application/zstd", ".sqlite": "application/vnd.sqlite3", ".db": "application/vnd.sqlite3",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}

func mimeType(name string) string {
	return mimeTypes[strings.ToLower(path.Ext(name))]
}
