#ifndef CHATBRIDGE_CTOML_H
#define CHATBRIDGE_CTOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// toml++ behind plain C: one call parses a buffer into a flat list of nodes in document order, each with the line and
// column of its key and of its value (1-based, columns in code points). No exception crosses this header.

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CB_TOML_TABLE = 0,
    CB_TOML_ARRAY = 1,
    CB_TOML_STRING = 2,
    CB_TOML_INTEGER = 3,
    CB_TOML_REAL = 4,
    CB_TOML_BOOLEAN = 5,
    /// A date, a time or both; `text` holds it as TOML writes it.
    CB_TOML_DATE = 6,
};

/// One value of the document. Children of tables and arrays follow their parent directly, depth first.
///
/// Pointers belong to the document and are valid until `cb_toml_free`. Texts are UTF-8, not NUL-terminated, and may be
/// empty.
typedef struct {
    int32_t kind;
    bool boolean;
    /// Direct children of a table or an array.
    size_t child_count;
    /// The key in the parent table; empty for the root and for array elements.
    const char *key;
    size_t key_count;
    uint32_t key_line;
    uint32_t key_column;
    uint32_t line;
    uint32_t column;
    const char *text;
    size_t text_count;
    int64_t integer;
    double real;
} cb_toml_node;

typedef struct cb_toml_document cb_toml_document;

/// Parses `count` bytes. NULL only when memory is out; a syntax error is a document whose `cb_toml_error` is not NULL.
cb_toml_document *cb_toml_parse(const char *bytes, size_t count);

/// The error in the text, UTF-8 and NUL-terminated, or NULL when it parsed. Fills in where (1-based).
const char *cb_toml_error(const cb_toml_document *document, uint32_t *line, uint32_t *column);

/// Nodes of a document that parsed; the first is the root table. 0 after an error.
size_t cb_toml_node_count(const cb_toml_document *document);

/// The node at `index`, which must be below `cb_toml_node_count`.
const cb_toml_node *cb_toml_node_at(const cb_toml_document *document, size_t index);

/// Frees the document and every pointer that came from it. Once for each `cb_toml_parse`; NULL is allowed.
void cb_toml_free(cb_toml_document *document);

#ifdef __cplusplus
}
#endif

#endif
