#include "CTOML.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// toml++ 3.3 takes some of its assertions for granted: "a = [}" fails one, which would end the process, or with NDEBUG
// promises the compiler that it cannot happen. Without them the parser goes on and reports an ordinary error.
#ifdef NDEBUG
#undef NDEBUG
#endif
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
// Numbers without streams, which would link 350 kB of locales; toml++ does not know that clang's C++ library can.
#define TOML_FLOAT_CHARCONV 1
#define TOML_ENABLE_FORMATTERS 0
// The parser asserts what a file can make false ("[=]" as a table's header), and a release build takes it for granted;
// the line behind the assertion reports the error as it should. So nothing is asserted and nothing assumed.
#include <toml++/impl/preprocessor.h>
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT_ASSUME(expr) static_assert(true)
#include <toml++/toml.h>

namespace {

std::string text_of(const toml::date &date)
{
    char text[32];
    std::snprintf(text, sizeof text, "%04u-%02u-%02u", unsigned(date.year), unsigned(date.month), unsigned(date.day));
    return text;
}

std::string text_of(const toml::time &time)
{
    char text[32];
    std::snprintf(
        text, sizeof text, "%02u:%02u:%02u", unsigned(time.hour), unsigned(time.minute), unsigned(time.second));
    std::string whole = text;
    if (time.nanosecond == 0) return whole;
    std::snprintf(text, sizeof text, ".%09u", unsigned(time.nanosecond));
    whole += text;
    return whole.erase(whole.find_last_not_of('0') + 1);
}

std::string text_of(const toml::date_time &time)
{
    const auto whole = text_of(time.date) + "T" + text_of(time.time);
    if (!time.offset) return whole;
    const int minutes = time.offset->minutes;
    if (minutes == 0) return whole + "Z";
    char text[32];
    std::snprintf(
        text, sizeof text, "%c%02d:%02d", minutes < 0 ? '-' : '+', std::abs(minutes) / 60, std::abs(minutes) % 60);
    return whole + text;
}

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
        std::tie(node.text, node.text_count) = keep(text_of(date));
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
    const auto result = toml::parse(std::string_view(bytes, count));
    if (result)
        document->append(result.table(), nullptr, 0);
    else
        document->fail(std::string(result.error().description()), result.error().source().begin);
    return document;
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
