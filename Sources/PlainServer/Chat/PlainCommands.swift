import BridgeTypes
import IRCProtocol

/// A command that a person types: one row with what it takes, what it does, and its handler.
struct PlainCommand: Sendable {
    let name: String
    let takes: String
    let summary: String
    let run: @Sendable (PlainSession, String) -> Void

    static let all: [PlainCommand] = [
        PlainCommand(name: "join", takes: "ROOM", summary: "enter a room, or bring it to the front") {
            $0.joinCommand($1)
        },
        PlainCommand(name: "part", takes: "", summary: "leave the room in front") { $0.partCommand($1) },
        PlainCommand(name: "rooms", takes: "", summary: "which rooms there are") { $0.roomsCommand($1) },
        PlainCommand(name: "who", takes: "", summary: "who is in the room") { $0.whoCommand($1) },
        PlainCommand(name: "me", takes: "TEXT", summary: "say what you do") { $0.meCommand($1) },
        PlainCommand(name: "reply", takes: "[NAME] TEXT", summary: "answer the newest message, or the newest of a user")
        {
            $0.replyCommand($1)
        },
        PlainCommand(name: "react", takes: "EMOJI [NAME]", summary: "react to it") { $0.reactCommand($1) },
        PlainCommand(name: "msg", takes: "NAME TEXT", summary: "say something to one person") { $0.msgCommand($1) },
        PlainCommand(name: "history", takes: "[COUNT]", summary: "what was said before") { $0.historyCommand($1) },
        PlainCommand(name: "search", takes: "TEXT", summary: "look for something that was said") {
            $0.searchCommand($1)
        },
        PlainCommand(name: "nick", takes: "NAME", summary: "be called otherwise") { $0.nickCommand($1) },
        PlainCommand(name: "help", takes: "", summary: "this list") { $0.helpCommand($1) },
        PlainCommand(name: "quit", takes: "[TEXT]", summary: "leave the chat") { $0.quit($1) },
    ]
}
