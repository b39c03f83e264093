#include "CTOML.h"

#include <algorithm>
#include <deque>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {
/// The parser of toml++ met text that it had taken for impossible, as the brace in `a = [}`.
struct parser_surprise {};
[[noreturn]] void report_parser_surprise() { throw parser_surprise{}; }
} // namespace

#define TOML_EXCEPTIONS 0
// What toml++ 3.3 asserts, some texts can break: that must end in an error, neither in an abort nor, as with NDEBUG, in
// undefined behaviour.
#undef NDEBUG
#define TOML_ASSERT(expr) ((expr) ? static_cast<void>(0) : report_parser_surprise())
#include <toml++/toml.h>

namespace {

/// Deepest nesting of tables and arrays, in levels. The configuration needs five; walking recurses.
constexpr size_t maximum_depth = 32;

struct failure {
    std::string message;
    uint32_t line;
    uint32_t column;
};

} // namespace

struct cb_toml_document {
    std::vector<cb_toml_node> nodes;
    // A deque, because nodes point into its elements while it grows.
    std::deque<std::string> texts;
    bool failed = false;
    failure error;

    std::pair<const char *, size_t> keep(std::string text)
    {
        texts.push_back(std::move(text));
        return { texts.back().data(), texts.back().size() };
    }

    void fail(std::string message, toml::source_position where)
    {
        nodes.clear();
        failed = true;
        error = { std::move(message), where.line, where.column };
    }

    template <typename Date>
    void keep_date(cb_toml_node &node, const Date &date)
    {
        std::ostringstream stream;
        stream << date;
        std::tie(node.text, node.text_count) = keep(stream.str());
    }

    bool append(const toml::node &source, const toml::key *key, size_t depth)
    {
        const auto begin = source.source().begin;
        if (depth > maximum_depth) {
            fail("nested too deeply", begin);
            return false;
        }
        cb_toml_node node{};
        node.key = "";
        node.text = "";
        node.line = begin.line;
        node.column = begin.column;
        if (key) {
            std::tie(node.key, node.key_count) = keep(std::string(key->str()));
            node.key_line = key->source().begin.line;
            node.key_column = key->source().begin.column;
        }
        switch (source.type()) {
        case toml::node_type::table: return append_table(*source.as_table(), node, depth);
        case toml::node_type::array: {
            const auto &array = *source.as_array();
            node.kind = CB_TOML_ARRAY;
            node.child_count = array.size();
            nodes.push_back(node);
            for (const auto &element : array)
                if (!append(element, nullptr, depth + 1)) return false;
            return true;
        }
        case toml::node_type::string:
            node.kind = CB_TOML_STRING;
            std::tie(node.text, node.text_count) = keep(source.as_string()->get());
            break;
        case toml::node_type::integer:
            node.kind = CB_TOML_INTEGER;
            node.integer = source.as_integer()->get();
            break;
        case toml::node_type::floating_point:
            node.kind = CB_TOML_REAL;
            node.real = source.as_floating_point()->get();
            break;
        case toml::node_type::boolean:
            node.kind = CB_TOML_BOOLEAN;
            node.boolean = source.as_boolean()->get();
            break;
        case toml::node_type::date:
            node.kind = CB_TOML_DATE;
            keep_date(node, source.as_date()->get());
            break;
        case toml::node_type::time:
            node.kind = CB_TOML_DATE;
            keep_date(node, source.as_time()->get());
            break;
        case toml::node_type::date_time:
            node.kind = CB_TOML_DATE;
            keep_date(node, source.as_date_time()->get());
            break;
        default:
            fail("a value of an unknown kind", begin);
            return false;
        }
        nodes.push_back(node);
        return true;
    }

    bool append_table(const toml::table &table, cb_toml_node &node, size_t depth)
    {
        // toml++ keeps keys sorted by name; the document's order is that of their positions.
        std::vector<std::pair<const toml::key *, const toml::node *>> entries;
        for (const auto &[key, value] : table) entries.emplace_back(&key, &value);
        std::sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) {
            const auto x = a.first->source().begin, y = b.first->source().begin;
            return std::make_pair(x.line, x.column) < std::make_pair(y.line, y.column);
        });
        node.kind = CB_TOML_TABLE;
        node.child_count = entries.size();
        nodes.push_back(node);
        for (const auto &[key, value] : entries)
            if (!append(*value, key, depth + 1)) return false;
        return true;
    }
};

extern "C" {

cb_toml_document *cb_toml_parse(const char *bytes, size_t count)
{
    auto *document = new (std::nothrow) cb_toml_document;
    if (!document) return nullptr;
    try {
        const auto result = toml::parse(std::string_view(bytes, count));
        if (result)
            document->append(result.table(), nullptr, 0);
        else
            document->fail(std::string(result.error().description()), result.error().source().begin);
        return document;
    } catch (const parser_surprise &) {
        // toml++ does not tell where it was.
        document->fail("a value is missing or malformed, as in \"[}\", somewhere in this file", {1, 1});
        return document;
    } catch (...) {
        delete document;
        return nullptr;
    }
}

const char *cb_toml_error(const cb_toml_document *document, uint32_t *line, uint32_t *column)
{
    if (!document->failed) return nullptr;
    *line = document->error.line;
    *column = document->error.column;
    return document->error.message.c_str();
}

size_t cb_toml_node_count(const cb_toml_document *document) { return document->nodes.size(); }

const cb_toml_node *cb_toml_node_at(const cb_toml_document *document, size_t index) { return &document->nodes[index]; }

void cb_toml_free(cb_toml_document *document) { delete document; }

} // extern "C"
