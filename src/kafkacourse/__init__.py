"""The course: checks, quizzes and applications of its chapters."""
