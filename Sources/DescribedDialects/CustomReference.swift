import ChatModel

/// The language of descriptions as tables of Markdown, made from what the compiler itself accepts.
public enum CustomReference {
    /// Events with their fields, needed ones in bold.
    public static var events: String {
        let rows = CustomEventKind.allCases.filter { $0 != .ignore }.map { kind in
            let needed = Set(kind.required.flatMap(\.self))
            let groups = kind.required.map { $0.map { "**\($0.text)**" }.joined(separator: " or ") }
            let words = kind.words.values.first.map { " " + $0.map { "`\($0)`" }.joined(separator: " ") } ?? ""
            let named: [String] = groups.map { $0 == "**state**" ? $0 + words : $0 }
            let others = kind.fields.filter { !needed.contains($0) }.map {
                kind.words[$0] == nil ? $0.text : $0.text + words
            }
            return "| `\(kind.rawValue)` | \((named + others).joined(separator: ", ")) |"
        }
        return table("event", "fields, **needed ones** in bold", rows)
    }

    /// Templates with the values that each can use.
    public static var templates: String {
        let everywhere = Set(CustomTemplateNames.everywhere)
        let rows = CustomCommandKind.allCases.map { kind in
            let names = kind.names.known.filter { !everywhere.contains($0) }.map(\.rawValue)
            return "| `\(kind.rawValue)` | \(names.joined(separator: ", ")) |"
        }
        let values = CustomTemplateNames.everywhere.map { "`\($0.rawValue)`" }.joined(separator: ", ")
        return table("key", "values that a template can use, besides \(values)", rows)
    }

    /// Words with a fixed set of values.
    public static var words: String {
        let rows = [
            ("`frames`", CustomDefinition.Frames.allCases.map(\.rawValue)),
            ("`echo`", CustomDefinition.Echo.allCases.map(\.rawValue)),
            ("`ids`", CustomDefinition.IDs.allCases.map(\.rawValue)),
            ("`edits`", CustomDefinition.Edits.allCases.map(\.rawValue)),
            ("`files`", CustomDefinition.Files.allCases.map(\.rawValue)),
            ("`as` of `unwrap`", CustomUnwrap.allCases.map(\.rawValue)),
            ("`as` of a field", CustomReading.allCases.map(\.rawValue)),
            ("`type` of a condition", CustomCondition.Kind.allCases.map(\.rawValue)),
            ("`order` of `history`", CustomCalls.HistoryCall.Order.allCases.map(\.rawValue)),
            ("filters", CustomFilter.names),
            ("parts of an attachment", CustomPath.Part.allCases.map(\.rawValue)),
            ("places in `history.get`", CustomAddress.historyPlaces.map { "{\($0)}" }),
        ].map { "| \($0.0) | \($0.1.map { "`\($0)`" }.joined(separator: " ")) |" }
        return table("where", "words", rows)
    }

    /// All keys of a description.
    public static var keys: String { CustomDefinition.keys.map { "`\($0)`" }.joined(separator: " ") }

    private static func table(_ left: String, _ right: String, _ rows: [String]) -> String {
        (["| \(left) | \(right) |", "| --- | --- |"] + rows).joined(separator: "\n")
    }
}
