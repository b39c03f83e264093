enum MessageVerb: String {
    case privmsg = "PRIVMSG"
    case notice = "NOTICE"
    case tagmsg = "TAGMSG"
}
