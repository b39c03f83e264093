/// The words of a message.
struct SpokenText: Equatable {
    /// Lines are parted by LF.
    var text: String
    /// Where the client cut lines that belong together: offsets in UTF-8, ascending.
    var cuts: [Int] = []
}
