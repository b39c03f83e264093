/// The words of a message.
package struct SpokenText: Equatable {
    /// Lines are parted by LF.
    package var text: String
    /// Where the client cut lines that belong together: offsets in UTF-8, ascending.
    package var cuts: [Int] = []

    package init(text: String, cuts: [Int] = []) {
        self.text = text
        self.cuts = cuts
    }
}
